package condense

import (
	"github.com/dewpoint-proxy/dewpoint/condense/record"
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

// LLM is the rolling condenser: a model writes a summary of the middle, which takes in the summary before it. It is safe
// for concurrent use if its Summariser is.
type LLM struct {
	s    LLMSettings
	form form
}

var _ Condenser = (*LLM)(nil)

// NewLLM gives a condenser with settings.
func NewLLM(s LLMSettings) *LLM {
	if s.Name == "" {
		s.Name = "llm"
	}
	s.MaxOutput = orDefault(s.MaxOutput, DefaultMaxOutput)
	s.MaxEventLength = max(orDefault(s.MaxEventLength, DefaultEventLength), minEventLength)
	return &LLM{s: s, form: prose{}}
}

// Name implements Condenser.
func (l *LLM) Name() string { return l.s.Name }

// Condense implements Condenser.
func (l *LLM) Condense(in Input) Decision {
	due := l.priced(in).Due(in)
	if due.Need.Reason == "" {
		return Decision{Kept: due.Kept}
	}
	l, failed := l.usable(in)
	if !l.ready(in, due.Need) {
		return Decision{Kept: KeptCooling}
	}
	c, ok := l.s.Cut(in, due, session.Size{Events: 1, Tokens: l.allowance(in, due.Target.Tokens)})
	if !ok {
		return Decision{Kept: KeptUncut}
	}
	return Decision{Job: &llmJob{LLM: l, in: in, due: due, cut: c, failed: failed}}
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

// allowance is the room for a summary and what stands next to it, in tokens: a quarter of the target, but always that of its wrapping.
func (l *LLM) allowance(in Input, target int) int {
	wrapping := in.Count(record.Summary{}.String()) + messageOverhead
	if target == unlimited {
		return wrapping
	}
	return max(wrapping, target/4)
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

// usable is the condenser by way of a model that is there: the request's own, while the configured one or its key is known not to be, with the reason.
func (l *LLM) usable(in Input) (*LLM, error) {
	if l.s.Health != nil && l.configured(in) && l.s.Health.Missing(l.attempt(in)) {
		return l.own(in), ErrMissing
	}
	return l, nil
}

// model is the summariser's model.
func (l *LLM) model(in Input) string {
	if l.s.Model != "" {
		return l.s.Model
	}
	return in.Model
}

// endpoint is where the summariser is. The client's own key goes nowhere but to the client's own upstream, and a configured one
// without the client's headers: they could have a gateway send it elsewhere, or bill it to another organisation.
func (l *LLM) endpoint(in Input) Endpoint {
	e := l.s.Endpoint
	if e.BaseURL == "" {
		e.BaseURL = in.Upstream.BaseURL
	}
	if e.BaseURL != in.Upstream.BaseURL {
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

// orDefault is v, or def where v is not set.
func orDefault(v, def int) int {
	if v <= 0 {
		return def
	}
	return v
}
