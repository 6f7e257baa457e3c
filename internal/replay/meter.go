package replay

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// What providers document, in tokens.
const (
	cacheMinimum = 1024 // length of the shortest prefix that is cached
	replyPriming = 3    // cost of every request in addition to its messages and tools
)

// lookBack is how many blocks before a mark Anthropic looks for a prefix in its cache.
const lookBack = 20

// digest is a SHA-256.
type digest = [sha256.Size]byte

// counter counts tokens in the encoding of each model. It remembers its counts, since agents send their history again and again. It is safe
// for concurrent use.
type counter struct {
	models   model.Table // has the encoding of each model
	encoders *tokenize.Registry
	*counts
}

// counts are the counts of texts that are known already. Several counters may share them.
type counts struct {
	mu    sync.Mutex
	known map[countKey]int
}

// countKey is what was counted: a text, in an encoding.
type countKey struct {
	encoding string
	sum      digest
}

func newCounts() *counts { return &counts{known: map[countKey]int{}} }

func newCounter(models map[string]model.Info, encoders *tokenize.Registry, known *counts) *counter {
	return &counter{models: model.Table{Configured: models}, encoders: encoders, counts: known}
}

// part is a message as a provider counts and caches it.
type part struct {
	raw []byte // without marks
	sum digest
}

func partOf(raw []byte) part { return part{raw, sha256.Sum256(raw)} }

// message counts a message of a request to a model, or of its answer.
func (c *counter) message(d dialect.Dialect, name string, p part) (int, error) {
	return c.count(name, p, func(e *tokenize.Encoder) (int, error) {
		content, err := d.Read(p.raw)
		if err != nil {
			return 0, fmt.Errorf("count a message: %w", err)
		}
		return e.Message(content), nil
	})
}

// text counts a text.
func (c *counter) text(name string, p part) (int, error) {
	return c.count(name, p, func(e *tokenize.Encoder) (int, error) { return e.Count(string(p.raw)), nil })
}

func (c *counter) count(name string, p part, count func(*tokenize.Encoder) (int, error)) (int, error) {
	info, _ := c.models.Lookup(name)
	encoder, err := c.encoders.Encoder(info.Encoding)
	if err != nil {
		return 0, fmt.Errorf("count tokens: %w", err)
	}
	key := countKey{encoder.Name(), p.sum}
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

// meter measures requests of one protocol as a provider with a prompt cache does. The cache is cold at first and never expires. A meter is not
// safe for concurrent use.
type meter struct {
	*counter
	wire    wire
	dialect dialect.Dialect
	cached  map[digest]bool // prefixes: the model, the tools and the first messages
}

func newMeter(c *counter, w wire) *meter {
	return &meter{counter: c, wire: w, dialect: w.dialect(), cached: map[digest]bool{}}
}

// prompt is a request as a provider bills it.
type prompt struct {
	model string
	tools part
	parts []part
	marks []int // parts at whose end the provider's cache keeps the prompt, ascending
}

// exchange measures a request and its answer. From then on the prompt is cached.
func (m *meter) exchange(body, answer []byte) (*dialect.Request, model.Usage, error) {
	r, err := m.dialect.Split("", body)
	if err != nil {
		return nil, model.Usage{}, fmt.Errorf("measure a request: %w", err)
	}
	p := prompt{model: r.Model, tools: partOf(r.Tools)}
	for i := range r.Messages {
		p.parts = append(p.parts, partOf(m.wire.plain(r.Messages[i].Raw)))
		if m.wire.caches(r.Messages[i].Raw) {
			p.marks = append(p.marks, i)
		}
	}
	u, err := m.measure(p, answer)
	return r, u, err
}

// measure measures a request and its answer. From then on the prompt is cached.
func (m *meter) measure(p prompt, answer []byte) (u model.Usage, err error) {
	if u.Output, err = m.message(m.dialect, p.model, partOf(answer)); err != nil {
		return u, err
	}
	if u.Input, err = m.text(p.model, p.tools); err != nil {
		return u, err
	}
	u.Input += replyPriming
	prefix := sha256.Sum256(append([]byte(p.model), p.tools.sum[:]...))
	prefixes, sizes := make([]digest, len(p.parts)), make([]int, len(p.parts))
	for i := range p.parts {
		n, err := m.message(m.dialect, p.model, p.parts[i])
		if err != nil {
			return u, err
		}
		u.Input += n
		prefix = sha256.Sum256(append(prefix[:], p.parts[i].sum[:]...))
		prefixes[i], sizes[i] = prefix, u.Input
	}
	if u.Cached = m.cache(p.marks, prefixes, sizes); u.Cached < cacheMinimum {
		u.Cached = 0
	}
	if u.Input >= cacheMinimum {
		u.Written = u.Input - u.Cached
	}
	return u, nil
}

// cache returns how many tokens of a request are cached, and puts its prefixes into the cache. A provider looks for them not far before a mark.
func (m *meter) cache(marks []int, prefixes []digest, sizes []int) (hit int) {
	for _, mark := range marks {
		for i := mark; i >= 0 && i > mark-lookBack; i-- {
			if m.cached[prefixes[i]] {
				hit = max(hit, sizes[i])
				break
			}
		}
	}
	for _, mark := range marks {
		m.cached[prefixes[mark]] = true
	}
	return hit
}
