package condense

import (
	"cmp"
	"context"

	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Defaults of LLMSettings.
const (
	DefaultMaxOutput = 4096
	DefaultWindow    = 128000
)

// LLMSettings configure the rolling summary. Fields that are not set take their defaults, those of Settings aside.
type LLMSettings struct {
	Settings
	Name       string     // of the condenser; default "llm"
	Summariser Summariser // required
	Endpoint   Endpoint   // of the summariser; what is empty is the request's own
	Model      string     // of the summariser; empty: the request's own
	Health     Health     // of the models; nil: all are well
	Rides      *Rides     // of summaries that may be asked behind the client's own prompt; nil: none is
	Focus      Focus      // what conversations are about; empty: what their tools tell

	Window         int // of the summariser's model, in tokens; default: the request's if the model is, else DefaultWindow
	MaxOutput      int // tokens of a summary; default DefaultMaxOutput
	MaxEventLength int // runes of one event in the prompt; default DefaultEventLength
}

// LLM is a rolling condenser that asks a model: for a summary of the middle, which takes in the summary before it, for a ranking of the
// events, or which of them go. It is safe for concurrent use if its Summariser is.
type LLM struct {
	s    LLMSettings
	form form // how summaries are written; nil where the model ranks events or chooses them

	ask   func(j *llmJob, ctx context.Context) (session.Condensation, error)
	ranks bool // the model ranks events, and writes no summary
}

// NewLLM gives a condenser with settings, by which a model writes a summary.
func NewLLM(s LLMSettings) *LLM {
	l := newLLM("llm", s, (*llmJob).write)
	l.form = prose{}
	return l
}

func newLLM(name string, s LLMSettings, ask func(*llmJob, context.Context) (session.Condensation, error)) *LLM {
	s.Name = cmp.Or(s.Name, name)
	s.MaxOutput = cmp.Or(s.MaxOutput, DefaultMaxOutput)
	s.MaxEventLength = max(cmp.Or(s.MaxEventLength, DefaultEventLength), minEventLength)
	return &LLM{s: s, ask: ask}
}

func (l *LLM) Name() string { return l.s.Name }

func (l *LLM) Condense(in Input) Decision {
	j := &llmJob{LLM: l, job: l.priced(in).job(l.s.Name, in)}
	return j.decide(j, func() Kept {
		if j.missing() {
			j.LLM, j.failed = l.own(in), ErrMissing
		}
		if !j.due.Need.tried() && !j.due.Need.AtOnce && j.cooling() {
			return KeptCooling
		}
		if j.ranks {
			return j.shrink(session.Size{})
		}
		return j.shrink(j.allowance())
	})
}

// priced is the settings with the price of the summary that would be asked for.
func (l *LLM) priced(in Input) Settings {
	s := l.s.Settings
	if e := s.Economics; e != nil && in.Total > e.Target {
		if _, cached := l.mayRide(&in); cached > 0 {
			own := *e
			own.Cached, s.Economics = cached, &own
		}
	}
	return s
}

// configured reports whether the summariser is another than the request's own model at its own upstream.
func (l *LLM) configured(in Input) bool {
	own := l.own(in)
	return l.model(in) != own.model(in) || l.endpoint(in) != own.endpoint(in)
}

// own is the condenser by way of the request's own model.
func (l *LLM) own(in Input) *LLM {
	own := *l
	own.s.Model, own.s.Endpoint, own.s.Window = "", Endpoint{}, 0
	own.s.MaxOutput = min(l.s.MaxOutput, own.window(in)/4)
	return &own
}

// model is the summariser's model.
func (l *LLM) model(in Input) string { return cmp.Or(l.s.Model, in.Model) }

// endpoint is where the summariser is. The client's own key goes nowhere but to the client's own upstream, and a configured one
// without the client's headers: they could have a gateway send it elsewhere, or bill it to another organisation.
func (l *LLM) endpoint(in Input) Endpoint {
	e := l.s.Endpoint
	if e.BaseURL = cmp.Or(e.BaseURL, in.Upstream.BaseURL); e.BaseURL != in.Upstream.BaseURL {
		return e
	}
	api := e.Way.API
	if e.Way = in.Upstream.Way; api != "" && api != e.Way.API {
		e.Way.API, e.Way.KeyHeader = api, ""
	}
	if e.Way.Route = ""; e.APIKey == "" {
		e.APIKey = in.Upstream.APIKey
	} else {
		e.Way.KeyHeader, e.Way.Headers = "", ""
	}
	if e.Way.Path != "" && l.s.Model != "" && l.s.Model != in.Model {
		e.Way.Path = agents.Deployed(e.Way.Path, l.s.Model)
	}
	return e
}

// window is how many tokens the summariser's model holds.
func (l *LLM) window(in Input) int {
	switch {
	case l.s.Window > 0:
		return l.s.Window
	case l.model(in) == in.Model && in.Window > 0:
		return in.Window
	}
	return DefaultWindow
}
