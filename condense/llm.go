package condense

import (
	"cmp"
	"context"
	"errors"

	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Defaults of LLMSettings.
const (
	DefaultMaxOutput = 4096
	DefaultWindow    = 128000
)

// LLMSettings configures an LLM condenser. Zero fields take their defaults, except for those of Settings.
type LLMSettings struct {
	Settings
	Summariser Summariser   // required
	Endpoint   Endpoint     // of the summariser; empty fields are taken from the request's upstream
	Model      string       // model of the summariser; empty: the request's own
	Health     Health       // health of the models; nil: all are healthy
	Reuse      *PromptReuse // summaries that may be asked for behind the client's own prompt; nil: none
	Focus      Focus        // subject of conversations; empty: derived from the tools used

	Prompt       string // the operator's instructions for a record, in place of the built-in ones; empty: those
	Instructions string // the operator's further instructions

	Window         int // window of the summariser's model, in tokens; default: the request's if the model is, else DefaultWindow
	MaxOutput      int // maximum tokens of a summary; default DefaultMaxOutput
	MaxEventLength int // maximum runes of one event in the prompt; default DefaultEventLength
}

// LLM is a rolling condenser that asks a model: for a summary of the middle that includes the summary before it, for a
// ranking of the events, or for a choice of what to hide. It is safe for concurrent use if its Summariser is.
type LLM struct {
	typeName string
	s        LLMSettings
	form     form // format of summaries; nil if the model ranks or chooses events

	ask   func(j *llmJob, ctx context.Context) (session.Condensation, error) // makes the condensation
	ranks bool                                                               // the model ranks events and writes no summary
}

// NewLLM returns a condenser by which a model writes a summary in prose.
func NewLLM(s LLMSettings) *LLM {
	return &LLM{typeName: "llm", s: s.withDefaults(), form: prose{}, ask: (*llmJob).write}
}

func (s LLMSettings) withDefaults() LLMSettings {
	s.MaxOutput = cmp.Or(s.MaxOutput, DefaultMaxOutput)
	s.MaxEventLength = max(cmp.Or(s.MaxEventLength, DefaultEventLength), minEventLength)
	return s
}

func (l *LLM) Name() string { return l.typeName }

func (l *LLM) Condense(in Input) Decision {
	priced := l.pricedSettings(in)
	if priced.Economics != nil && !l.ranks && !priced.earned(in) {
		if x := l.withoutCall(in); x.due.Need.Reason == session.ReasonEconomics && !in.Need.Ahead {
			return x.decide(x, func() Obstacle { return x.shrink(x.quoteRoom()) })
		}
		priced.Economics = nil
	}
	j := &llmJob{LLM: l, job: priced.job(l.typeName, in)}
	return j.decide(j, func() Obstacle {
		if j.modelMissing() {
			j.LLM = l.ownModel(in)
			j.modelErr = ErrMissing
		}
		j.LLM = j.fitted(in)
		if !j.due.Need.mayTry() && !j.due.Need.AtOnce && j.isCooling() {
			return ObstacleCooling
		}
		if j.ranks {
			return j.shrink(session.Size{})
		}
		return j.shrink(j.allowance())
	})
}

// withoutCall returns the condensation that is made, by its own price, as long as the run has not earned a summary.
func (l *LLM) withoutCall(in Input) *unearnedJob {
	s := l.s.Settings
	s.Economics = new(*s.Economics)
	s.Economics.In, s.Economics.Out, s.Economics.Cached = 0, 0, 0
	return &unearnedJob{excerptsJob{job: s.job(l.typeName, in), provisional: true}}
}

// ErrUnearned is the reason why there is no summary of a run that has not saved yet what it costs.
var ErrUnearned = errors.New("the run has not saved yet what a summary costs")

// unearnedJob makes a condensation without a model for a condenser that has one. The next summary covers what it hides.
type unearnedJob struct{ excerptsJob }

func (j *unearnedJob) Run(ctx context.Context) (Result, error) {
	r, err := j.excerptsJob.Run(ctx)
	r.Fallback = ErrUnearned
	return r, err
}

// pricedSettings returns the settings with the price of the summary that would be asked for.
func (l *LLM) pricedSettings(in Input) Settings {
	s := l.s.Settings
	if e := s.Economics; e != nil && in.Total > e.Floor {
		if _, cached := l.mayReuse(&in); cached > 0 {
			priced := *e
			priced.Cached = cached
			s.Economics = &priced
		}
	}
	return s
}

// isConfigured reports whether the summariser is not the request's own model at its own upstream.
func (l *LLM) isConfigured(in Input) bool {
	own := l.ownModel(in)
	return l.model(in) != own.model(in) || l.endpoint(in) != own.endpoint(in)
}

// ownModel returns the condenser with the request's own model.
func (l *LLM) ownModel(in Input) *LLM {
	own := *l
	own.s.Model, own.s.Endpoint, own.s.Window = "", Endpoint{}, 0
	own.s.MaxOutput = min(l.s.MaxOutput, own.window(in)/4)
	return &own
}

func (l *LLM) model(in Input) string { return cmp.Or(l.s.Model, in.Model) }

// endpoint returns the summariser's endpoint. The client's key is sent only to the client's own upstream. A configured key
// is sent without the client's headers: they could make a gateway send it elsewhere, or bill another organisation.
func (l *LLM) endpoint(in Input) Endpoint {
	e := l.s.Endpoint
	e.BaseURL = cmp.Or(e.BaseURL, in.Upstream.BaseURL)
	if e.BaseURL != in.Upstream.BaseURL {
		return e
	}
	api := e.Way.API
	e.Way = in.Upstream.Way
	e.Way.Route = ""
	if l.model(in) != in.Model {
		e.Way.Limit = ""
	}
	if api != "" && api != e.Way.API {
		if !agents.IsDeployment(e.Way.Path) { // it belongs to the client's protocol
			e.Way.Path = ""
		}
		e.Way.API, e.Way.KeyHeader = api, ""
	}
	if e.APIKey == "" {
		e.APIKey = in.Upstream.APIKey
	} else {
		e.Way.KeyHeader, e.Way.Headers = "", ""
	}
	if e.Way.Path != "" && l.s.Model != "" && l.s.Model != in.Model {
		e.Way.Path = agents.Deployed(e.Way.Path, l.s.Model)
	}
	return e
}

// window returns the context window of the summariser's model, in tokens.
func (l *LLM) window(in Input) int {
	switch {
	case l.s.Window > 0:
		return l.s.Window
	case l.model(in) == in.Model && in.Window > 0:
		return in.Window
	}
	return DefaultWindow
}
