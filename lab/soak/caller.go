package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"
)

// caller sends an agent's requests as an SDK does: over whichever replica it is given, and once more where the
// connection fails or upstream has an error that may pass.
type caller struct {
	*soak
	chance *rand.Rand // of faults and of replicas
	tries  int
	only   int // slot of the replica that all goes to, -1: any
	before []string
}

// The bounds of one call: of its attempts, of those among them that upstream fails, and the pause between two.
const (
	mostAttempts = 400
	mostFaults   = 3
	mostTime     = 4 * patience
	pause        = 50 * time.Millisecond // doubled each time
	longestPause = 500 * time.Millisecond
)

// call sends a line's history until it is answered, and adds the answer to it.
func (c *caller) call(ctx context.Context, l *line, r reply) error {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	var now []string
	faults := 0
	for attempt := range mostAttempts {
		c.tries++
		m, answer := r.at(c.tries)
		x := &exchange{id: fmt.Sprintf("%d/%d/%d", l.family.number, l.number, c.tries), family: l.family, answer: answer}
		x.sent, x.inside = l.body()
		x.edited = l.edited
		if faults < mostFaults && c.chance.Float64() < c.weather.upstream() {
			x.fault = pickFault(c.chance)
		}
		now = append(now, x.id)
		if c.attempt(ctx, l, x) {
			for _, id := range c.before {
				c.exchanges.Delete(id)
			}
			c.before = now
			held := m.raw()
			if sealed := x.sealed.Load(); sealed != nil {
				held = *sealed
			}
			l.messages, l.pending, l.final = append(l.messages, held), m.ToolCalls, *m.Content
			return nil
		}
		if x.fault != noFault {
			faults++
		}
		if !sleep(ctx, min(pause<<min(attempt, 4), longestPause)) {
			break
		}
	}
	c.tally.violate("every request is served in the end", l.name(), "not after %d attempts, %v", len(now), context.Cause(ctx))
	return errUnserved
}

// errUnserved ends an agent whose request was not served.
var errUnserved = errors.New("a request was not served")

// attempt sends an exchange once, and reports whether the agent can go on with the answer.
func (c *caller) attempt(ctx context.Context, l *line, x *exchange) bool {
	x.answer = x.fault.on(x.answer).answer
	c.exchanges.Store(x.id, x)
	slot := c.only
	if slot < 0 {
		slot = c.chance.IntN(c.fleet.size())
	}
	to := c.fleet.at(slot)
	c.sent.Add(1)
	began := time.Now()
	got := c.send(ctx, l, x, to.addr)
	how := c.verdict(x, l, to, got, began)
	c.tally.count(groupEnded, how.String())
	if x.fault != noFault && x.newest.Load() != nil {
		c.tally.count(groupInjected, string(x.fault))
	}
	l.place(x, to, got, began, how.how == endUseless && len(l.messages) <= promptAlone)
	if how != endServed {
		return false
	}
	l.last = x
	for _, condensed := range got.header.Values("X-Dewpoint-Condensed") {
		reason, _, _ := strings.Cut(condensed, ";")
		c.tally.count(groupCondensed, reason)
	}
	return true
}

// promptAlone is how many messages a line has that has a system prompt and a first prompt alone.
const promptAlone = 2

// got is how an attempt ended for the client.
type got struct {
	status int
	header http.Header
	body   []byte
	err    error // of the connection, before or in the answer
	dialed bool  // there was a connection
}

// whole reports whether an answer came to what looks like its end. The end of a stream is its last event: the connection may
// break after it.
func (g got) whole(stream bool) bool {
	return g.err == nil && (!stream || g.status != http.StatusOK || bytes.HasSuffix(bytes.TrimSpace(g.body), []byte("data: [DONE]")))
}

func (c *caller) send(ctx context.Context, l *line, x *exchange, addr string) got {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/chat/completions", bytes.NewReader(x.sent))
	if err != nil {
		return got{err: err}
	}
	req.Header = l.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+l.family.tenant.key)
	req.Header.Set(exchangeHeader, x.id)
	if l.wish != "" {
		req.Header.Set("X-Dewpoint-Condense", l.wish)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		var dial *net.OpError
		return got{err: err, dialed: !errors.As(err, &dial) || dial.Op != "dial"}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return got{status: resp.StatusCode, header: resp.Header, body: body, err: err, dialed: true}
}

// place notes where an exchange belongs, by the answer's header.
func (l *line) place(x *exchange, on *replica, g got, began time.Time, prompt bool) {
	p := placement{
		exchange: x.id, session: g.header.Get("X-Dewpoint-Session"), thread: g.header.Get("X-Dewpoint-Thread"),
		from: began, to: time.Now(), prompt: prompt,
	}
	p.lost = on.doomed.Load() || p.thread == "" && g.status == http.StatusOK
	l.placed = append(l.placed, p)
}
