package summariser

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// lacksFor is how long it is remembered what a server does not take: servers change.
const lacksFor = time.Hour

// Lacks remembers what servers were found not to take, by URL and model. It may be used concurrently; on nil it remembers nothing.
type Lacks struct {
	now   func() time.Time
	known *lru.Cache[subject, lacking]
}

type lacking struct {
	lacks
	at time.Time
}

// NewLacks gives a Lacks that knows of none. now is the clock.
func NewLacks(now func() time.Time) (*Lacks, error) {
	known, err := lru.New[subject, lacking](remembered)
	if err != nil {
		return nil, fmt.Errorf("new lacks: %w", err)
	}
	return &Lacks{now: now, known: known}, nil
}

// lacks is what one server does not take.
type lacks struct {
	effort  bool // reasoning_effort
	options bool // stream_options
	stream  bool // stream
	limit   bool // max_output_tokens, of the Responses API
}

func (l *Lacks) of(r condense.Request) lacks {
	if l == nil {
		return lacks{}
	}
	known, ok := l.known.Get(anyones(r))
	if !ok || l.now().Sub(known.at) > lacksFor {
		return lacks{}
	}
	return known.lacks
}

func (l *Lacks) remember(r condense.Request, known lacks) {
	if l != nil {
		l.known.Add(anyones(r), lacking{known, l.now()})
	}
}

// anyones is the server of a request whatever its credential.
func anyones(r condense.Request) subject {
	return serverOf(condense.Attempt{Endpoint: condense.Endpoint{BaseURL: r.Endpoint.BaseURL}, Model: r.Model})
}

// learn takes from a failure what the server does not take, and reports whether that is news. A server that was silent to the end
// of our patience may be one that writes the whole answer before it says anything: the next call lets it.
func (l *lacks) learn(err error) bool {
	was := *l
	text, refused := refusal(err)
	switch {
	case err == nil, refused && text == "":
	case strings.Contains(text, "max_output_tokens"):
		l.limit = true
	case has(text, `(reasoning_)?effort`):
		l.effort = true
	case strings.Contains(text, "stream_options"), strings.Contains(text, "include_usage"):
		l.options = true
	case has(text, `stream(s|ed|ing)?`), errors.Is(err, errWhole), errors.Is(err, errSilent), errors.Is(err, errGarbled):
		l.stream = true
	}
	return *l != was
}

// has reports whether a text has a word, which is no part of another one.
func has(text, word string) bool {
	return regexp.MustCompile(`\b` + word + `\b`).MatchString(text)
}

// refusal reports whether a server refused a request, and what it says, in lower case, if it may not take the request's form.
func refusal(err error) (text string, is bool) {
	e, is := errors.AsType[*refused](err)
	if is && slices.Contains([]int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented}, e.status) {
		text = strings.ToLower(e.said)
	}
	return text, is && e.status > 0
}

// effort is the lowest reasoning_effort that a family of models accepts: a summary needs little thought, and what is thought comes out
// of the room for the answer.
type effort struct {
	family, lowest string // family: how the model's name begins
}

// efforts are as of November 2025, from OpenAI's API reference of reasoning_effort, which names gpt-5.1 (from none), the models before
// it (no none) and gpt-5-pro (high only). The first that fits counts. Models with an empty one, and those that are not listed, are sent
// none: they do not reason, take only one, or it is not known.
func efforts() []effort {
	return []effort{
		{"o1-mini", ""}, {"o1-preview", ""}, {"o1-pro", ""}, {"o3-pro", ""},
		{"o1", "low"}, {"o3", "low"}, {"o4", "low"},
		{"gpt-5-pro", ""}, {"gpt-5-chat", ""}, {"gpt-5-codex", ""}, {"gpt-5.1-chat", ""}, {"gpt-5.1-codex", ""},
		{"gpt-5.1", "none"}, {"gpt-5-mini", "minimal"}, {"gpt-5-nano", "minimal"}, {"gpt-5-2", "minimal"},
	}
}

// effortOf gives the lowest effort that is known to be accepted by a model, empty if none is.
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
