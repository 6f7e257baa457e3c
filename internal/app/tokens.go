package app

import (
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// tokens counts in the encoding that the configuration gives a model.
type tokens struct {
	*tokenize.Calibration
	config   atomic.Pointer[config.Config] // in force
	encoders *tokenize.Registry
}

// Counter gives the model's counter; a conservative estimate where its vocabulary cannot be loaded.
func (t *tokens) Counter(model string) engine.Counter {
	m, _ := t.config.Load().ModelFor(model)
	e, err := t.encoders.Encoder(m.Encoding)
	if err != nil {
		return counter{encoding: "estimate", tokenizer: tokenize.Estimator{}}
	}
	return counter{encoding: e.Name(), tokenizer: e}
}

// tokenizer is an encoder, or what stands in for one.
type tokenizer interface {
	Count(text string) int
	Message(m session.Content) int
	Tools(raw []byte) int
}

type counter struct {
	tokenizer
	encoding string
}

func (c counter) Encoding() string  { return c.encoding }
func (c counter) Text(s string) int { return c.Count(s) }
