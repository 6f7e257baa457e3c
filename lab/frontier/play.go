package frontier

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Prices are those of a token read from the cache, written to it, and answered, in those of an input token without a cache.
type Prices struct{ Read, Write, Output float64 }

// bill is the size of a prompt and what of it is cached, in tokens.
type bill struct{ total, cached int }

func (p Prices) of(b bill) float64 {
	return p.Read*float64(b.cached) + p.Write*float64(b.total-b.cached)
}

// Granularity of a provider's cache, in tokens.
const (
	minCached  = 1024
	cachedStep = 128
)

// cache holds the prefixes of prompts.
type cache struct {
	seed maphash.Seed
	seen map[uint64]bool
}

func newCache() *cache { return &cache{maphash.MakeSeed(), map[uint64]bool{}} }

// charge bills a prompt of a fixed beginning and messages, and caches it.
func (c *cache) charge(fixed int, messages [][]byte) bill {
	var h maphash.Hash
	h.SetSeed(c.seed)
	b := bill{total: bytesPerToken * fixed, cached: bytesPerToken * fixed}
	hit := true
	if !c.seen[0] {
		b.cached, hit = 0, false
		c.seen[0] = true
	}
	for _, m := range messages {
		h.Write(m)
		b.total += len(m)
		prefix := h.Sum64()
		if hit = hit && c.seen[prefix]; hit {
			b.cached = b.total
		}
		c.seen[prefix] = true
	}
	b.total, b.cached = b.total/bytesPerToken, b.cached/bytesPerToken
	if b.cached < minCached {
		b.cached = 0
	}
	b.cached -= b.cached % cachedStep
	return b
}

// Outcome is what a run costs without and with a condenser, and what its actions could not see. Costs are in tokens of input.
type Outcome struct {
	Name          string
	Direct, Cost  float64
	Condensations int
	Named, Missed int
	Rereads       float64 // what reading again would cost
}

// Play plays a run from its first step to its last.
func (r *Run) Play(ctx context.Context, c condense.Condenser, p Prices) (Outcome, error) {
	o := Outcome{Name: r.Name}
	direct, with := newCache(), newCache()
	m := memory{}
	var log []session.Condensation
	for k, s := range r.steps {
		history := session.NewHistory(session.Hash{}, r.messages[:s.at])
		o.Direct += p.of(direct.charge(r.fixed, r.sent(s))) + p.Output*float64(s.answer)
		v, after, err := r.settle(ctx, c, history, log)
		if err != nil {
			return o, fmt.Errorf("step %d: %w", k, err)
		}
		o.Condensations += len(after) - len(log)
		log = after
		raws := make([][]byte, len(v.Items))
		for i := range v.Items {
			raws[i] = r.raw(&v.Items[i])
		}
		b := with.charge(r.fixed, raws)
		o.Cost += p.of(b) + p.Output*float64(s.answer)
		m.look(r, k, &v, b, p)
	}
	o.Named, o.Missed, o.Rereads = m.named, m.missed, m.rereadPrice
	return o, nil
}

// sent returns the messages of a step as the agent sends them.
func (r *Run) sent(s step) [][]byte {
	messages := make([][]byte, s.at)
	for i := range messages {
		messages[i] = r.messages[i].Raw
	}
	return messages
}

// rounds bounds the condensations at one step.
const rounds = 4

// settle condenses as the proxy does, until nothing is due any more.
func (r *Run) settle(ctx context.Context, c condense.Condenser, h *session.History, log []session.Condensation) (session.View, []session.Condensation, error) {
	v := session.Project(h, log)
	condense.Render(r, &v)
	for range rounds {
		d := c.Condense(r.input(&v))
		if d.View != nil {
			v = *d.View
		}
		if d.Job == nil {
			break
		}
		made, err := d.Job.Run(ctx)
		switch {
		case ctx.Err() != nil:
			return v, log, fmt.Errorf("condense: %w", ctx.Err())
		case err != nil:
			return v, log, nil //nolint:nilerr // the request goes on as it is
		}
		done := made.Condensation
		if len(log) > 0 {
			done.Base = log[len(log)-1].ID
		}
		done.ID = session.CondensationID{Thread: "run", Seq: uint64(len(log) + 1)}
		log = append(log[:len(log):len(log)], done)
		v = session.Project(h, log)
		condense.Render(r, &v)
	}
	return v, log, nil
}

func (r *Run) input(v *session.View) condense.Input {
	in := condense.Input{View: v, Measure: r.measure, Count: r.counter.Count, Model: "agent", Codec: r, Fixed: r.fixed, Total: r.fixed}
	for _, n := range r.measure(v.Items) {
		in.Total += n
	}
	return in
}
