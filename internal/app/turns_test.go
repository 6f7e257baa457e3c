package app

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// TestNoVocabulary checks that counts are conservative estimates if a vocabulary cannot be loaded.
func TestNoVocabulary(t *testing.T) {
	counters := &tokenCounters{encoders: tokenize.New()}
	counters.config.Store(&config.Config{Models: map[string]model.Info{"m": {Encoding: "lost"}}})
	c := counters.Counter("m")
	if n := c.Text("hello"); c.Encoding() != "estimate" || n < 1 || n > 5 {
		t.Errorf("%s: %d tokens", c.Encoding(), n)
	}
	if n := c.Message(session.Content{Role: "user"}) + c.Text("[]"); n < 2 {
		t.Errorf("%d tokens", n)
	}
}
