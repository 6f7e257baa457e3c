package replay

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// What providers document, in tokens.
const (
	cacheMinimum = 1024 // length of the shortest prefix that is cached
	replyPriming = 3    // cost of every request in addition to its messages and tools
)

// digest is a SHA-256.
type digest = [sha256.Size]byte

// counter counts tokens in the encoding of each model. It remembers its counts, since agents send their history again and again. It is safe
// for concurrent use.
type counter struct {
	dialect  dialect.Dialect
	cfg      *config.Config // has the encoding of each model
	encoders *tokenize.Registry

	mu    sync.Mutex
	known map[digest]int
}

func newCounter(cfg *config.Config, encoders *tokenize.Registry) *counter {
	return &counter{dialect: chat.New(chat.Options{}), cfg: cfg, encoders: encoders, known: map[digest]int{}}
}

// message counts a message of a request to a model, or of its answer.
func (c *counter) message(name string, raw []byte) (int, error) {
	return c.count(name, raw, func(e *tokenize.Encoder) (int, error) {
		content, err := c.dialect.Read(raw)
		if err != nil {
			return 0, fmt.Errorf("count a message: %w", err)
		}
		return e.Message(content), nil
	})
}

// text counts a text.
func (c *counter) text(name string, text []byte) (int, error) {
	return c.count(name, text, func(e *tokenize.Encoder) (int, error) { return e.Count(string(text)), nil })
}

func (c *counter) count(name string, raw []byte, count func(*tokenize.Encoder) (int, error)) (int, error) {
	info, _ := c.cfg.ModelFor(name)
	encoder, err := c.encoders.Encoder(info.Encoding)
	if err != nil {
		return 0, fmt.Errorf("count tokens: %w", err)
	}
	key := sha256.Sum256(append([]byte(encoder.Name()+"\x00"), raw...))
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.known[key]
	if !ok {
		if n, err = count(encoder); err != nil {
			return 0, err
		}
		c.known[key] = n
	}
	return n, nil
}

// meter measures requests as a provider with an automatic prompt cache does. The cache holds whole messages, is cold at first and never
// expires. A meter is not safe for concurrent use.
type meter struct {
	*counter
	cached map[digest]bool // prefixes: the model, the tools and the first messages
}

func newMeter(c *counter) *meter { return &meter{counter: c, cached: map[digest]bool{}} }

// exchange measures a request and its answer. From then on the prompt is cached.
func (m *meter) exchange(body, answer []byte) (r *dialect.Request, u model.Usage, err error) {
	if r, err = m.dialect.Split("", body); err != nil {
		return nil, u, fmt.Errorf("measure a request: %w", err)
	}
	if u.Output, err = m.message(r.Model, answer); err != nil {
		return nil, u, err
	}
	if u.Input, err = m.text(r.Model, r.Tools); err != nil {
		return nil, u, err
	}
	u.Input += replyPriming
	prefix := sha256.Sum256(fmt.Appendf(nil, "%q %q", r.Model, r.Tools))
	hit := true
	for i := range r.Messages {
		n, err := m.message(r.Model, r.Messages[i].Raw)
		if err != nil {
			return nil, u, err
		}
		prefix = sha256.Sum256(append(prefix[:], r.Messages[i].Raw...))
		hit = hit && m.cached[prefix]
		m.cached[prefix] = true
		if u.Input += n; hit {
			u.Cached = u.Input
		}
	}
	if u.Cached < cacheMinimum {
		u.Cached = 0
	}
	if u.Input >= cacheMinimum {
		u.Written = u.Input - u.Cached
	}
	return r, u, nil
}
