package proxy

import (
	"cmp"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// strangers is how many names the log says something of, for each thing that it says once: a client may make them up.
const strangers = 100

// first reports whether something is said of a name for the first time.
func (s *Server) first(what, name string) bool {
	s.said.Lock()
	defer s.said.Unlock()
	if names := s.said.of[what]; slices.Contains(names, name) || len(names) == strangers {
		return false
	}
	s.said.of[what] = append(s.said.of[what], name)
	return true
}

// recognised takes note that a request's thread is known.
func (r *request) recognised() {
	s, place, seen := r.server, r.turn.Place(), &r.seen
	if name := r.turn.ModelName(); r.model.Name == "" && s.first("model", name) {
		s.o.Log.Warn("unknown model: its window and encoding are a guess; configure it under models", zap.String("model", name))
	}
	// Summaries whose key is not configured, or that were changed: the history is forwarded without their condensations, and condensed
	// anew when that is due.
	for range place.Unreadable {
		s.o.Faults.Lost("summary_unreadable")
	}
	if place.Unreadable > 0 && s.first("summary", "") {
		s.o.Log.Error("a summary cannot be read: is its key missing in store.encryption.keys? Said once, counted in store_losses_total",
			r.noted().fields(place.Thread)...)
	}
	seen.turn, seen.price, seen.record.Times.Resolved = r.turn, r.model.Price, s.o.Now()
	seen.record.Turn = &TurnRecord{
		Session: place.Thread.Session, Thread: place.Thread.ID, Source: place.Source, Begins: place.Begins,
		Relation: place.Relation(),
	}
	if !place.New {
		seen.idle = seen.record.Times.Resolved.Sub(place.Thread.Seen)
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
		r.seen.failed = cmp.Or(r.seen.failed, string(r.seen.record.Condensed.Whole))
		r.seen.record.Turn.Supposed = report.Supposed
		if report.Supposed.Made {
			o.Observer.Condensed(r.noted().condensation(report.Due, OutcomeObserved))
		}
	}
	if report.Window > 0 {
		o.Log.Info("context window learnt", append(r.noted().fields(r.turn.Place().Thread), zap.String("name", r.turn.ModelName()),
			zap.Int("window", report.Window))...)
	}
	r.seen.record.Call.Doubted = report.Doubted
	if m := report.Misreport; m != nil { // once for each model
		why := "usage is not believed: upstream counted far less than was sent; the count stays as it is. Said once for each model"
		if m.Cut {
			why = "upstream cuts prompts and says nothing: its count stays while the history grows, and is taken for its window"
		}
		o.Log.Warn(why, append(r.noted().fields(r.turn.Place().Thread),
			zap.String("name", r.turn.ModelName()), zap.Int("counted", m.Ours), zap.Int("reported", m.Theirs))...)
	}
	r.noted().attempts(report)
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

// noted is whose condensations are noted.
type noted struct {
	server *Server
	tenant *Tenant
	asked  Asked
	model  string
}

func (r *request) noted() noted {
	return noted{r.server, r.tenant, r.seen.record.Asked, r.seen.record.Model}
}

// fields find a request, and its conversation.
func (n noted) fields(t session.Thread) []zap.Field {
	f := []zap.Field{
		zap.String("request_id", n.asked.ID), zap.String("tenant", n.tenant.Name), zap.String("model", n.model),
		zap.String("session", string(t.Session)), zap.String("thread", string(t.ID)),
	}
	if n.asked.Trace != "" {
		f = append(f, zap.String("trace_id", n.asked.Trace))
	}
	return f
}

// attempts counts condensations, and says in the log what each did and cost, and why one did not come about, or has no summary.
func (n noted) attempts(report engine.Report) {
	if report.Panic != nil {
		n.server.o.panicked(report.Panic)
	}
	for i := range report.Attempts {
		n.attempt(&report.Attempts[i])
	}
}

func (n noted) attempt(a *engine.Attempt) {
	outcome, level, said, err := OutcomeCondensed, zap.InfoLevel, "condensed", error(nil)
	switch {
	case a.Ahead && a.Err != nil:
		outcome, level, said, err = OutcomeNotPrepared, zap.WarnLevel, "summary not prepared", a.Err
	case a.Ahead:
		outcome, said = OutcomePrepared, "summary prepared"
	case a.Err != nil:
		outcome, level, said, err = OutcomeFailed, zap.WarnLevel, "not condensed", a.Err
	case a.Fallback != nil:
		outcome, said, err = OutcomeFallback, "condensed without a summary", a.Fallback
		if !errors.Is(err, condense.ErrAtOnce) {
			level = zap.WarnLevel
		}
	}
	if bad, is := errors.AsType[*condense.SummaryError](err); is {
		n.server.o.Faults.BadSummary(n.tenant.Name, bad.Kind)
	}
	if entry := n.server.o.Log.Check(level, said); entry != nil {
		entry.Write(append(n.attemptFields(a, outcome), zap.Error(err))...)
	}
	ended := n.condensation(a.Reason, outcome)
	if ended.Redeems = a.Redeems; a.Made != nil {
		ended.Asked = a.Made.Asked()
	}
	n.server.o.Observer.Condensed(ended)
}

// attemptFields say what a condensation did, how long it took and what its calls cost. The tokens of the view are our count,
// corrected by what upstream reported earlier.
func (n noted) attemptFields(a *engine.Attempt, outcome Outcome) []zap.Field {
	used := a.Cost.Used
	f := append(n.fields(session.Thread{Session: a.Session, ID: a.Thread}),
		zap.String("condenser", n.tenant.Condenser.Name()), zap.String("reason", string(a.Reason)), zap.String("outcome", string(outcome)),
		zap.Float64("ms", float64(a.Cost.Took.Microseconds())/1000), zap.Int("attempts", a.Cost.Calls),
		zap.Int("prompt_tokens", used.Input), zap.Int("cached_tokens", used.Cached), zap.Int("completion_tokens", used.Output))
	if a.Cost.Unpriced == "" {
		f = append(f, zap.Float64("usd", float64(a.Cost.Nano)/nano))
	}
	if c := a.Made; c != nil {
		f = append(f, zap.Uint64("seq", c.ID.Seq), zap.String("made", string(c.Made())), zap.String("asked", string(c.Asked())),
			zap.Int("events", c.Before.Events), zap.Int("tokens", c.Before.Tokens), zap.Int("events_after", c.After.Events), zap.Int("tokens_after", c.After.Tokens))
	}
	why := cause(cmp.Or(a.Err, a.Fallback, a.Replaced))
	if errors.Is(a.Fallback, condense.ErrAtOnce) {
		why = condense.Cause(a.Fallback)
	}
	if why != "" {
		f = append(f, zap.String("cause", why))
	}
	return f
}

func (n noted) condensation(reason session.Reason, o Outcome) Condensation {
	return Condensation{Tenant: n.tenant.Name, Condenser: n.tenant.Condenser.Name(), Reason: reason, Outcome: o}
}
