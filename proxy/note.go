package proxy

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/engine/summaries"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// maxNames bounds the names about which a message is logged once each: clients can make them up.
const maxNames = 100

// first reports whether a message of some kind is about a name for the first time.
func (s *Server) first(kind, name string) bool {
	s.logged.Lock()
	defer s.logged.Unlock()
	names := s.logged.names[kind]
	if slices.Contains(names, name) || len(names) == maxNames {
		return false
	}
	s.logged.names[kind] = append(names, name)
	return true
}

// noteRecognised records the thread of a request that was recognised.
func (r *request) noteRecognised() {
	s, place := r.server, r.form.Place()
	if name := r.form.Turn().ModelName(); r.parsed.model.Name == "" && s.first("model", name) {
		s.o.Log.Warn("unknown model: its window and encoding are a guess; configure it under models", zap.String("model", name))
	}
	if name := r.form.Turn().ModelName(); r.tenant.ByPrice && !r.parsed.model.Price.Known() && s.first("ratios", name) {
		ratios := model.RatiosOf(name)
		s.o.Log.Info("the price of a model is not known: usual ratios decide when to condense, and savings are shown in tokens. For dollars, set its price under models",
			zap.String("model", name), zap.Float64("cached_input", ratios.CachedInput/ratios.Input), zap.Float64("output", ratios.Output/ratios.Input))
	}
	if c := r.form.Turn().Compactor(); c.Client != "" && s.first("compactor", c.Client) {
		s.o.Log.Warn("a client condenses its history by itself, so that summaries are paid for twice; switch that off. Logged once",
			zap.String("tenant", r.tenant.Name), zap.String("client", c.Client), zap.String("how", c.Off))
	}
	// The key of these summaries is not configured, or they were altered. The history is forwarded without their condensations, and
	// condensed again when that is due.
	for range place.Unreadable {
		s.o.Faults.Lost("summary_unreadable")
	}
	if place.Unreadable > 0 && s.first("summary", "") {
		s.o.Log.Error("a summary cannot be read: is its key missing in store.encryption.keys? Logged once; counted in dewpoint_store_losses_total",
			r.reporter().fields(place.Thread)...)
	}
	r.recorder.price = r.parsed.model.Price
	r.recorder.record.Times.Resolved = s.o.Now()
	r.recorder.record.Turn = &TurnRecord{
		Session: place.Thread.Session, Thread: place.Thread.ID,
		Source: place.Source, Begins: place.Begins, Relation: place.Relation(), Step: r.form.Turn().Step(),
		Arm: r.form.Turn().Arm(), Prompt: r.form.Turn().Prompt(),
	}
	if !place.New {
		r.recorder.idle = r.recorder.record.Times.Resolved.Sub(place.Thread.Seen)
	}
}

// Bounds of the names that a record keeps, in bytes.
const (
	maxModel = 100 // of models
	maxAgent = 100 // of clients
)

func askedModel(name string) string { return strings.Clone(name[:min(len(name), maxModel)]) }

// noteReport records and logs what a step of the turn did.
func (r *request) noteReport(report engine.Report) {
	o := &r.server.o
	for _, a := range report.Attempts {
		r.recorder.failed = cause(cmp.Or(a.Err, a.Fallback, a.Replaced))
	}
	if outcome := report.Overall(); outcome != "" {
		r.recorder.noteOutcome(outcome, r.recorder.failed, report.Due)
		if whole := r.recorder.record.Condensed.Whole; whole.Skips() {
			r.recorder.skipped = string(whole)
		} else {
			r.recorder.failed = cmp.Or(r.recorder.failed, string(whole))
		}
		if outcome == engine.Unread {
			r.recorder.failed = string(outcome)
		}
		r.recorder.record.Turn.Supposed = report.Supposed
		if report.Supposed.Made {
			o.Observer.Condensed(r.reporter().condensation(report.Due, OutcomeObserved))
		}
	}
	if report.Window > 0 {
		o.Log.Info("a context window was learnt from upstream", append(r.reporter().fields(r.form.Place().Thread),
			zap.String("name", r.form.Turn().ModelName()), zap.Int("window", report.Window))...)
	}
	r.recorder.record.Call.Doubted, r.recorder.whole = report.Doubted, report.Whole
	if m := report.Misreport; m != nil { // reported once for each model
		message := "usage is not believed: upstream counted far less than was sent; the count stays as it is. Logged once for each model"
		if m.Cut {
			message = "upstream cuts prompts and says nothing: its count stays while the history grows, and is taken for its window"
		}
		o.Log.Warn(message, append(r.reporter().fields(r.form.Place().Thread),
			zap.String("name", r.form.Turn().ModelName()), zap.Int("counted", m.Ours), zap.Int("reported", m.Theirs))...)
	}
	if c := report.Cramped; c != nil { // reported once for each model
		o.Log.Warn("max_tokens leaves hardly any memory: system prompt and tools nearly fill it. Set it higher. Said once for each model",
			append(r.reporter().fields(r.form.Place().Thread),
				zap.String("name", r.form.Turn().ModelName()), zap.Int("tokens", c.Tokens), zap.Int("memory", c.Memory))...)
	}
	r.reporter().attempts(report)
}

// cause returns why a condensation failed, in a word. It is empty if there was no error, if another request is making the condensation, or
// if the request did not wait for it.
func cause(err error) string {
	switch {
	case errors.Is(err, session.ErrLocked), condense.AsConfigured(err):
		return ""
	case errors.Is(err, engine.ErrDeadline):
		return "deadline"
	case errors.Is(err, summaries.ErrCrowded):
		return "busy"
	case errors.Is(err, engine.ErrRefused):
		return "refused"
	case errors.Is(err, engine.ErrSuperseded):
		return string(engine.Locked)
	case errors.Is(err, session.ErrUnavailable):
		return "store"
	}
	return condense.Cause(err)
}

// reporter logs and counts the condensations of a request, which may outlive it.
type reporter struct {
	server *Server
	tenant *Tenant
	asked  Asked
	model  string
}

func (r *request) reporter() reporter {
	return reporter{r.server, r.tenant, r.recorder.record.Asked, r.recorder.record.Model}
}

// fields returns the log fields that identify a request and its conversation.
func (p reporter) fields(t session.Thread) []zap.Field {
	f := []zap.Field{
		zap.String("request_id", p.asked.ID), zap.String("tenant", p.tenant.Name), zap.String("model", p.model),
		zap.String("session", string(t.Session)), zap.String("thread", string(t.ID)),
	}
	if p.asked.Trace != "" {
		f = append(f, zap.String("trace_id", p.asked.Trace))
	}
	return f
}

// attempts counts and logs the attempts at a condensation: what each did and cost, and why one failed or has no summary.
func (p reporter) attempts(report engine.Report) {
	if report.Panic != nil {
		p.server.o.logPanic(report.Panic)
	}
	for i := range report.Attempts {
		p.attempt(&report.Attempts[i])
	}
}

func (p reporter) attempt(a *engine.Attempt) {
	outcome, level, message, err := result(a)
	if bad, ok := errors.AsType[*condense.SummaryError](err); ok {
		p.server.o.Faults.BadSummary(p.tenant.Name, bad.Kind)
	}
	p.server.o.Log.Log(level, message, append(p.attemptFields(a, outcome), zap.Error(err))...)
	c := p.condensation(a.Reason, outcome)
	c.Redeems = a.Redeems
	if a.Made != nil {
		c.Asked, c.Grounding = a.Made.Asked(), a.Made.Grounding
	}
	p.server.o.Observer.Condensed(c)
}

// result returns how an attempt ended and how that is logged.
func result(a *engine.Attempt) (outcome Outcome, level zapcore.Level, message string, err error) {
	switch {
	case a.Ahead && a.Err != nil:
		return OutcomeNotPrepared, zap.WarnLevel, "summary not prepared", a.Err
	case a.Ahead:
		return OutcomePrepared, zap.InfoLevel, "summary prepared", nil
	case a.Err != nil:
		return OutcomeFailed, zap.WarnLevel, "not condensed", a.Err
	case a.Fallback == nil:
		return OutcomeCondensed, zap.InfoLevel, "condensed", nil
	case condense.AsConfigured(a.Fallback):
		return OutcomeFallback, zap.InfoLevel, "condensed without a summary", a.Fallback
	}
	return OutcomeFallback, zap.WarnLevel, "condensed without a summary", a.Fallback
}

// attemptFields returns the log fields for what a condensation did, how long it took and what its calls cost. The tokens of the view are our
// count, corrected by upstream's earlier reports.
func (p reporter) attemptFields(a *engine.Attempt, outcome Outcome) []zap.Field {
	used := a.Cost.Used
	f := append(p.fields(session.Thread{Session: a.Session, ID: a.Thread}),
		zap.String("condenser", p.tenant.Condenser.Name()), zap.String("reason", string(a.Reason)), zap.String("outcome", string(outcome)),
		zap.Float64("ms", float64(a.Cost.Took.Microseconds())/1000), zap.Int("attempts", a.Cost.Calls),
		zap.Int("prompt_tokens", used.Input), zap.Int("cached_tokens", used.Cached), zap.Int("completion_tokens", used.Output))
	if a.Cost.Unpriced == "" {
		f = append(f, zap.Float64("usd", float64(a.Cost.Nano)/nanosPerUSD))
	}
	if c := a.Made; c != nil {
		f = append(f,
			zap.Uint64("seq", c.ID.Seq), zap.String("made", string(c.Made())), zap.String("asked", string(c.Asked())),
			zap.Int("events", c.Before.Events), zap.Int("tokens", c.Before.Tokens),
			zap.Int("events_after", c.After.Events), zap.Int("tokens_after", c.After.Tokens))
		if c.Grounding.Lines > 0 {
			f = append(f, zap.Stringer("grounded", c.Grounding))
		}
	}
	why := cause(cmp.Or(a.Err, a.Fallback, a.Replaced))
	if condense.AsConfigured(a.Fallback) {
		why = condense.Cause(a.Fallback)
	}
	if why != "" {
		f = append(f, zap.String("cause", why))
	}
	return f
}

func (p reporter) condensation(reason session.Reason, o Outcome) Condensation {
	return Condensation{Tenant: p.tenant.Name, Condenser: p.tenant.Condenser.Name(), Reason: reason, Outcome: o}
}
