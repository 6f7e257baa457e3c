package proxy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// observation is what is noted of one request on its way: for the metrics, for its line in the log, and for its spans. It
// is part of the request, is used by one goroutine at a time, and does not allocate where nothing is traced or logged.
type observation struct {
	server  *Server
	request *request     // nil: refused before there was one
	turn    *engine.Turn // nil: not recognised
	meters  *meters
	name    seriesName
	spans   *spans // nil: not traced

	begun      time.Time     // the header has come
	read       time.Time     // and the body
	sent       time.Time     // the last call upstream began
	first      time.Time     // the first byte of the answer's body has come; zero: none yet
	overhead   time.Duration // our own time before the first call upstream
	condensing time.Duration
	known      int            // tokens of the history that had come before
	idle       time.Duration  // since the thread was last seen
	after      session.Size   // what went upstream
	usage      *session.Usage // nil: not reported
	answer     dialect.Answer // kept for a tenant whose content is logged
	status     int            // of the client's answer
	code       string         // what went wrong, empty: nothing
	over       bool
}

// begin is when a request's header has come.
func (o *observation) begin(s *Server) {
	o.server, o.begun, o.meters = s, s.o.Now(), s.o.Metrics.strange
	s.o.Metrics.traffic.inFlight.Inc()
}

// accepted is when a request's tenant is known.
func (o *observation) accepted(r *request) {
	o.request = r
	if m, ok := r.live.meters[r.tenant]; ok {
		o.meters = m
	}
}

// bodyRead is when the whole request has come.
func (o *observation) bodyRead() {
	o.read = o.server.o.Now()
	if r := o.request; r.asked.dialect != nil {
		o.name.dialect = r.asked.dialect.Name()
	}
	if o.server.o.Tracer != nil {
		o.spans = beginSpans(o)
	}
}

// asked is when the request's model is known.
func (o *observation) asked(m ModelInfo) {
	if o.name.model = m.Name; m.Name == "" {
		o.name.model = otherModel
	}
	o.spans.named(o.name)
}

// recognised is when the request's thread is known, and how much of it had come before.
func (o *observation) recognised(t *engine.Turn) {
	o.turn = t
	m, place := o.meters, t.Place()
	if c, ok := m.sources[place.Source]; ok {
		c.Inc()
	}
	switch {
	case !place.New:
	case place.Match == session.MatchInside:
		m.forks.Inc()
	default:
		m.threads.Inc()
	}
	if place.Begins {
		m.sessions.Inc()
	}
	if !place.New {
		o.idle = o.server.o.Now().Sub(place.Thread.Seen)
	}
	o.spans.resolved(nil)
}

// unrecognised is when the store did not answer.
func (o *observation) unrecognised(err error) { o.spans.resolved(err) }

// condense is when a condensation begins. The function that it returns is called at its end, and ctx is for what it calls.
func (o *observation) condense(ctx context.Context, need condense.Need) (context.Context, func([]engine.Condensed)) {
	begun := o.server.o.Now()
	ctx, end := o.spans.condensing(ctx, o.request.tenant.Condenser.Name(), need)
	return ctx, func(made []engine.Condensed) {
		took := o.server.o.Now().Sub(begun)
		o.condensing += took
		o.observe(o.meters.condensing, took)
		end(made)
	}
}

// sending is when a call upstream begins.
func (o *observation) sending() {
	now := o.server.o.Now()
	if o.sent.IsZero() {
		o.overhead = now.Sub(o.read) - o.condensing
		o.observe(o.meters.overhead, o.overhead)
	}
	o.sent = now
	o.spans.sending(o.request)
}

// answered is when upstream's header has come, or did not come.
func (o *observation) answered(resp *http.Response, err error) { o.spans.answered(resp, err) }

// firstByte is when some of the answer's body has come.
func (o *observation) firstByte() {
	if o.first.IsZero() {
		o.first = o.server.o.Now()
		o.observe(o.meters.firstByte, o.first.Sub(o.sent))
		o.spans.firstByte()
	}
}

// held is how long the end of the answer waited for the log.
func (o *observation) held(since time.Time) {
	o.observe(o.meters.hold, o.server.o.Now().Sub(since))
}

// forwarded is what went upstream.
func (o *observation) forwarded(after session.Size) {
	s := o.meters.of(o.name)
	o.known = o.turn.Known()
	s.in.Add(float64(max(o.turn.Before().Tokens, 0)))
	s.forwarded.Add(float64(max(after.Tokens, 0)))
	o.after = after
}

// used is what upstream reported of an answer, nil if it did not.
func (o *observation) used(u *session.Usage) {
	t, s := o.turn, o.meters.of(o.name)
	b := bill{
		before: t.Before().Tokens, after: o.after.Tokens, known: o.known, idle: o.idle, condensed: len(t.Condensed()) > 0, usage: u,
		price: o.request.model.Price,
	}
	if o.usage = u; u != nil {
		s.used(*u)
	}
	s.saved(b.saved())
}

// refused is when a request gets an error of ours, or nothing since nobody is there any more.
func (o *observation) refused(status int, code string) { o.end(status, code) }

// relayed is when an answer has been handed on, or has broken off.
func (o *observation) relayed(out outcome) {
	o.answer, o.status = out.Answer, out.Status
	o.server.lines.content(o)
	switch {
	case errors.Is(out.Err, errClientGone), out.Err != nil && errors.Is(context.Cause(o.request.ctx), errClientGone):
		o.end(out.Status, codeClientGone)
	case errors.Is(out.Err, errDefect):
		o.end(out.Status, codeInternal)
	case out.Err != nil:
		o.end(out.Status, codeBroken)
	case out.Status >= http.StatusInternalServerError:
		o.end(out.Status, codeUpstream5xx)
	case out.Status >= http.StatusBadRequest:
		o.end(out.Status, codeUpstream4xx)
	default:
		o.end(out.Status, "")
	}
}

// The codes of requests that got no error of ours.
const (
	codeClientGone  = "client_gone"     // the client left
	codeBroken      = "upstream_broken" // upstream broke off its answer
	codeUpstream4xx = "upstream_4xx"    // upstream refused the request
	codeUpstream5xx = "upstream_5xx"    // or failed
)

// end is when a request is over. Only the first end counts.
func (o *observation) end(status int, code string) {
	if o.over || o.server == nil {
		return
	}
	o.over, o.status, o.code = true, status, code
	m := o.server.o.Metrics
	m.traffic.inFlight.Dec()
	if code == codeClientGone {
		m.clientGone()
	}
	took := o.server.o.Now().Sub(o.begun)
	o.meters.of(o.name).ended(ending{status / 100, code})
	if o.request != nil {
		o.observe(o.meters.seconds, took)
	}
	o.spans.end(o)
	o.server.lines.write(o, took)
}

// observe adds to a histogram, with the trace as an example where there is one.
func (o *observation) observe(h prometheus.Observer, took time.Duration) {
	if id := o.spans.id(); id != "" {
		if e, ok := h.(prometheus.ExemplarObserver); ok {
			e.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": id})
			return
		}
	}
	h.Observe(took.Seconds())
}
