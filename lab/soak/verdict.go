package soak

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// ending is how an exchange ended, and why.
type ending struct{ how, why string }

func (e ending) String() string {
	if e.why == "" {
		return e.how
	}
	return e.how + ": " + e.why
}

var (
	endServed  = ending{how: "served"}
	endRefused = ending{"connection refused", "the replica was killed"}
	endKilled  = ending{"broken", "the replica was killed"}
	endSlow    = ending{"given up", "upstream took as long as the proxy waits, on a busy machine"}
	endLate    = ending{"given up", "it reached upstream late, on a busy machine"}
	endWrong   = ending{how: "VIOLATION"}
)

// endUseless is a whole answer that no client can read.
const endUseless = "useless"

// verdict judges how an exchange ended, against what was planned for it and what upstream wrote.
func (c *caller) verdict(x *exchange, l *line, on *replica, g got, began time.Time) ending {
	if !g.dialed && on.doomed.Load() {
		return endRefused
	}
	if g.err != nil && on.doomed.Load() {
		return endKilled
	}
	d := x.newest.Load()
	switch {
	case d == nil && time.Since(began) > waiting:
		return endLate
	case d == nil:
		return c.wrong("a request reaches upstream", x, g, "it did not")
	}
	is := d.soFar()
	if e, judged := c.differs(x, g, is); judged {
		return e
	}
	switch x.fault.on(x.answer).outcome {
	case broken:
		if x.fault == halfStream && l.stream {
			return c.mustEnd(x, g, is, began)
		}
		return c.mustBreak(x, l, g)
	case refused:
		return c.mustRefuse(x, g, is, began)
	}
	return c.mustServe(x, l, g, is, began)
}

// differs judges the bytes: what the client has is what upstream wrote, whole or a beginning of it.
func (c *caller) differs(x *exchange, g got, is answered) (ending, bool) {
	switch {
	case g.status == 0 || own(g):
		return ending{}, false
	case g.status != is.status:
		return c.wrong("upstream's status comes back", x, g, "upstream sent %d", is.status), true
	case !bytes.HasPrefix(is.written, g.body):
		return c.wrong("the client gets what upstream sent", x, g, "upstream sent %s", is.written), true
	case g.err == nil && len(g.body) < len(is.written):
		return c.wrong("an answer that ends is whole", x, g, "upstream sent %d bytes, not %d: %s", len(is.written), len(g.body), is.written), true
	}
	return ending{}, false
}

// own reports whether an error is of the proxy's own making: no header of upstream's is on it.
func own(g got) bool {
	return g.status >= http.StatusBadRequest && g.header.Get("Openai-Version") == ""
}

func code(g got) string {
	var e struct{ Error struct{ Code string } }
	_ = json.Unmarshal(g.body, &e) // what is no error of the proxy's has no code
	return e.Error.Code
}

func (c *caller) mustBreak(x *exchange, l *line, g got) ending {
	if g.err == nil && !own(g) {
		how := "the connection ended cleanly"
		if g.whole(l.stream) {
			how = "it looks whole"
		}
		return c.wrong("what upstream broke off is seen to be broken", x, g, "%s, under %q", how, x.fault)
	}
	return ending{"broken", "upstream: " + string(x.fault)}
}

// mustEnd judges a stream that upstream has ended properly, but without its end mark: the client gets the same.
func (c *caller) mustEnd(x *exchange, g got, is answered, began time.Time) ending {
	if g.err == nil && !own(g) {
		return ending{"cut short", "upstream: " + string(x.fault)}
	}
	if e, late := c.late(is, began); late {
		return e
	}
	return c.wrong("an end that upstream framed is relayed", x, g, "upstream sent %d %s", is.status, is.written)
}

func (c *caller) mustRefuse(x *exchange, g got, is answered, began time.Time) ending {
	if g.err != nil || own(g) {
		if e, late := c.late(is, began); late {
			return e
		}
		return c.wrong("upstream's own error comes back", x, g, "upstream sent %d %s", is.status, is.written)
	}
	if got, want := g.header.Get("Retry-After"), is.header.Get("Retry-After"); got != want {
		return c.wrong("Retry-After comes back", x, g, "%q, want %q", got, want)
	}
	return ending{"refused", "upstream: " + string(x.fault)}
}

func (c *caller) mustServe(x *exchange, l *line, g got, is answered, began time.Time) ending {
	if g.whole(l.stream) && g.status == http.StatusOK {
		if x.fault.useless(l.stream) {
			return ending{endUseless, "upstream: " + string(x.fault)}
		}
		return endServed
	}
	if e, late := c.late(is, began); late {
		return e
	}
	return c.wrong("a request that upstream would have served is served", x, g, "upstream sent %d %s", is.status, is.written)
}

// waiting is how long the proxy waits at least, less a bit for the way.
const waiting = silence * 8 / 10

// late reports whether upstream, unasked, took as long as the proxy waits, or was reached that late.
func (c *caller) late(is answered, began time.Time) (ending, bool) {
	now := time.Now()
	if is.began.IsZero() {
		is.began = now
	}
	if is.ended.IsZero() {
		is.ended = now
	}
	switch {
	case is.arrived.Sub(began) > waiting:
		return endLate, true
	case is.began.Sub(is.arrived) > waiting, is.ended.Sub(is.began) > waiting:
		return endSlow, true
	}
	return ending{}, false
}

func (c *caller) wrong(rule string, x *exchange, g got, format string, args ...any) ending {
	c.tally.violate(rule, x.id, "%s; the client got %d %q, %v: %s", fmt.Sprintf(format, args...), g.status, code(g), g.err, g.body)
	return endWrong
}
