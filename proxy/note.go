package proxy

import (
	"cmp"
	"errors"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// once is what the log says once.
type once struct {
	sync.Mutex
	models map[string]bool // what it has named of them
	sealed atomic.Bool     // it has told of an unreadable summary
	unread sync.Map        // why bodies passed unread, of what it has told
}

// noteRecognised takes note that a request's thread is known.
func (r *request) noteRecognised() {
	if r.model.Name == "" {
		r.server.strangeModel(r.turn.ModelName())
	}
	r.noteUnreadable()
	r.seen.recognised(r.turn, r.model.Price)
}

// noteUnreadable counts the summaries that could not be opened, since their key is not configured or they were changed. The
// history is forwarded without their condensations, and condensed anew when that is due.
func (r *request) noteUnreadable() {
	s, place := r.server, r.turn.Place()
	for range place.Unreadable {
		s.o.Faults.Lost("summary_unreadable")
	}
	if place.Unreadable > 0 && !s.once.sealed.Swap(true) {
		s.o.Log.Error("a summary cannot be read: is its key missing in store.encryption.keys? Said once, counted in store_losses_total",
			zap.String("tenant", r.tenant.Name), zap.String("thread", string(place.Thread.ID)))
	}
}

// strangers is how many models are named in the log.
const strangers = 100

// first reports whether something is said of a model for the first time.
func (o *once) first(of string) bool {
	o.Lock()
	defer o.Unlock()
	if o.models[of] || len(o.models) == strangers {
		return false
	}
	o.models[of] = true
	return true
}

// strangeModel reports a model whose window and encoding are a guess.
func (s *Server) strangeModel(name string) {
	if s.once.first(name) {
		s.o.Log.Warn("unknown model: its window and encoding are a guess; configure it under models", zap.String("model", name))
	}
}

// note takes note of what a step of the turn did.
func (r *request) note(report engine.Report) {
	o := &r.server.o
	for _, a := range report.Attempts {
		r.seen.failed = cause(cmp.Or(a.Err, a.Fallback, a.Replaced))
	}
	if what := report.Outcome(); what != "" {
		r.seen.condensed(what, r.seen.failed, report.Due)
		r.seen.failed = cmp.Or(r.seen.failed, notTried(what))
		r.seen.record.Turn.Supposed = report.Supposed
		if report.Supposed.Made {
			o.Observer.Condensed(r.noted().condensation(report.Due, OutcomeObserved))
		}
	}
	if report.Window > 0 {
		o.Log.Info("context window learnt", zap.String("tenant", r.tenant.Name), zap.String("model", r.turn.ModelName()),
			zap.Int("window", report.Window))
	}
	r.seen.record.Call.Doubted = report.Doubted
	r.noteMisreport(report.Misreport)
	r.noted().attempts(report)
}

// notTried is why nothing was tried although a limit is exceeded, in the word that the client is told; empty where that is not so, or
// where the client knows.
func notTried(what engine.Outcome) string {
	switch what {
	case engine.Cooling, engine.Uncut, engine.Loop, engine.Locked, engine.Refused:
		return string(what)
	}
	return ""
}

// noteMisreport says in the log that upstream's count of a prompt is not believed. The engine reports it once for each model.
func (r *request) noteMisreport(m *engine.Misreport) {
	if m == nil {
		return
	}
	why := "usage is not believed: upstream counted far less than was sent; the count stays as it is. Said once for each model"
	if m.Cut {
		why = "upstream cuts prompts and says nothing: its count stays while the history grows, and is taken for its window"
	}
	r.server.o.Log.Warn(why, zap.String("tenant", r.tenant.Name), zap.String("model", r.turn.ModelName()),
		zap.Int("counted", m.Ours), zap.Int("reported", m.Theirs))
}

// cause is why a condensation failed, in a word; empty if it did not, if another request is making it, or if it was not waited for.
func cause(err error) string {
	switch {
	case errors.Is(err, session.ErrLocked), errors.Is(err, condense.ErrAtOnce):
		return ""
	case errors.Is(err, engine.ErrDeadline):
		return "deadline"
	case errors.Is(err, engine.ErrCrowded):
		return "busy"
	case errors.Is(err, engine.ErrRefused):
		return "refused"
	case errors.Is(err, session.ErrUnavailable):
		return "store"
	}
	return condense.Cause(err)
}

// late gives what takes note of a condensation that the request did not wait for. It outlives the request.
func (r *request) late() func(engine.Report) { return r.noted().attempts }

// noted is whose condensations are noted.
type noted struct {
	server  *Server
	tenant  *Tenant
	request string
	model   string
}

func (r *request) noted() noted {
	return noted{r.server, r.tenant, r.seen.record.Asked.ID, r.seen.record.Model}
}

// fields find an attempt's request, and its conversation.
func (n noted) fields(a *engine.Attempt, err error) []zap.Field {
	return []zap.Field{
		zap.String("request_id", n.request), zap.String("tenant", n.tenant.Name), zap.String("model", n.model),
		zap.String("session", string(a.Session)), zap.String("thread", string(a.Thread)), zap.String("reason", string(a.Reason)),
		zap.Error(err),
	}
}

// attempts counts condensations, and says in the log why one did not come about, or has no summary.
func (n noted) attempts(report engine.Report) {
	if report.Panic != nil {
		n.server.panicked(report.Panic)
	}
	for i := range report.Attempts {
		n.attempt(&report.Attempts[i])
	}
}

func (n noted) attempt(a *engine.Attempt) {
	o, outcome := &n.server.o, OutcomeCondensed
	cause := a.Err
	if a.Fallback != nil {
		cause, outcome = a.Fallback, OutcomeFallback
		level := zap.WarnLevel
		if errors.Is(cause, condense.ErrAtOnce) {
			level = zap.InfoLevel
		}
		o.Log.Log(level, "condensed without a summary", n.fields(a, cause)...)
	}
	var bad *condense.SummaryError
	if errors.As(cause, &bad) {
		o.Faults.BadSummary(n.tenant.Name, bad.Kind)
	}
	if a.Err != nil {
		outcome = OutcomeFailed
		o.Log.Warn("not condensed", n.fields(a, a.Err)...)
	}
	ended := n.condensation(a.Reason, outcome)
	if ended.Redeems = a.Redeems; a.Made != nil {
		ended.Asked = a.Made.Asked()
	}
	o.Observer.Condensed(ended)
}

func (n noted) condensation(reason session.Reason, o Outcome) Condensation {
	return Condensation{Tenant: n.tenant.Name, Condenser: n.tenant.Condenser.Name(), Reason: reason, Outcome: o}
}
