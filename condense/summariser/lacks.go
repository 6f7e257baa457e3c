package summariser

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
)

// lacksTTL is how long Lacks remembers a server's missing features, since servers change.
const lacksTTL = time.Hour

// Lacks remembers which optional features servers were found to lack, by URL and model. Safe for concurrent use. A nil *Lacks
// remembers nothing.
type Lacks struct {
	known lru.Cache[subject, lacksEntry]
}

type lacksEntry struct {
	lacks
	at time.Time
}

// NewLacks returns an empty Lacks.
func NewLacks() *Lacks {
	known := lru.New[subject, lacksEntry](maxRemembered)
	return &Lacks{known}
}

// lacks holds the features that one server lacks, by their parameters.
type lacks struct {
	effort  bool // reasoning_effort
	options bool // stream_options
	stream  bool // stream
	limit   bool // max_output_tokens, in the Responses API
}

func (l *Lacks) of(r condense.Request) lacks {
	if l == nil {
		return lacks{}
	}
	known, ok := l.known.Get(modelOf(r))
	if !ok || time.Since(known.at) > lacksTTL {
		return lacks{}
	}
	return known.lacks
}

// modelOf identifies the server and the model of a request, for all credentials.
func modelOf(r condense.Request) subject {
	return serverOf(condense.Attempt{Endpoint: condense.Endpoint{BaseURL: r.Endpoint.BaseURL}, Model: r.Model})
}

// The words by which errors refer to parameters, as whole words.
var (
	effortWord = regexp.MustCompile(`\b(reasoning_)?effort\b`)
	streamWord = regexp.MustCompile(`\bstream(s|ed|ing)?\b`)
)

// learn derives a missing feature from an error, and reports whether it is a new one. A server that sent nothing before the timeout
// may write the whole answer before sending any of it, so the next call allows that.
func (l *lacks) learn(err error) bool {
	before := *l
	text := "" // of the error, if its status allows that the form of the request is the cause
	e, answered := errors.AsType[*refused](err)
	if answered && slices.Contains([]int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented}, e.status) {
		text = strings.ToLower(e.text)
	}
	switch {
	case err == nil, answered && e.status > 0 && text == "":
	case strings.Contains(text, "max_output_tokens"):
		l.limit = true
	case effortWord.MatchString(text):
		l.effort = true
	case strings.Contains(text, "stream_options"), strings.Contains(text, "include_usage"):
		l.options = true
	case streamWord.MatchString(text), errors.Is(err, errNotStreamed), errors.Is(err, errSilent), errors.Is(err, errGarbled):
		l.stream = true
	}
	return *l != before
}

// effort is the lowest reasoning_effort that a family of models accepts. A summary needs little reasoning, and reasoning reduces the
// room for the answer.
type effort struct {
	family, lowest string // family: the beginning of the models' names
}

// efforts returns the known families, of which the first match applies. They are as of November 2025, from OpenAI's API reference for
// reasoning_effort, which names gpt-5.1 (none and up), the models before it (no none) and gpt-5-pro (high only). The parameter is
// not sent to models with an empty effort and to unlisted ones, which do not reason, accept only one value, or are not
// documented.
func efforts() []effort {
	return []effort{
		{"o1-mini", ""}, {"o1-preview", ""}, {"o1-pro", ""}, {"o3-pro", ""},
		{"o1", "low"}, {"o3", "low"}, {"o4", "low"},
		{"gpt-5-pro", ""}, {"gpt-5-chat", ""}, {"gpt-5-codex", ""}, {"gpt-5.1-chat", ""}, {"gpt-5.1-codex", ""},
		{"gpt-5.1", "none"}, {"gpt-5-mini", "minimal"}, {"gpt-5-nano", "minimal"}, {"gpt-5-2", "minimal"},
	}
}

// effortOf returns the lowest effort that a model is known to accept, or an empty string.
func effortOf(model string) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	if name == "gpt-5" {
		return "minimal"
	}
	for _, e := range efforts() {
		if strings.HasPrefix(name, e.family) {
			return e.lowest
		}
	}
	return ""
}
