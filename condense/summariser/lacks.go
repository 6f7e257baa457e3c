package summariser

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	openai "github.com/sashabaranov/go-openai"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// lacksFor is how long it is remembered what a server does not take: servers change.
const lacksFor = time.Hour

// Lacks remembers what servers were found not to take, by URL and model. It may be used concurrently; on nil it remembers nothing.
type Lacks struct {
	now   func() time.Time
	known *lru.Cache[server, lacking]
}

type lacking struct {
	lacks
	at time.Time
}

// NewLacks gives a Lacks that knows of none. now is the clock.
func NewLacks(now func() time.Time) (*Lacks, error) {
	known, err := lru.New[server, lacking](remembered)
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
func anyones(r condense.Request) server {
	return serverOf(condense.Attempt{Endpoint: condense.Endpoint{BaseURL: r.Endpoint.BaseURL}, Model: r.Model})
}

// shape gives a request the form that the server takes.
func (l lacks) shape(request openai.ChatCompletionRequest) openai.ChatCompletionRequest {
	if !l.effort {
		request.ReasoningEffort = effortOf(request.Model)
	}
	if !l.stream && !l.options {
		request.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	return request
}

// learn takes from a failure what the server does not take, and reports whether that is news. A server that was silent to the end
// of our patience may be one that writes the whole answer before it says anything: the next call lets it.
func (l *lacks) learn(err error) bool {
	was := *l
	text, refused := refusal(err)
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil, refused && text == "":
	case strings.Contains(text, "max_output_tokens"):
		l.limit = true
	case has(text, `(reasoning_)?effort`):
		l.effort = true
	case strings.Contains(text, "stream_options"), strings.Contains(text, "include_usage"):
		l.options = true
	case has(text, `stream(s|ed|ing)?`), errors.Is(err, errWhole), errors.Is(err, errSilent),
		errors.As(err, &syntax), errors.As(err, &mistyped): // a stream that cannot be read
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
	var parameter string
	var status int
	if e, ok := errors.AsType[*openai.APIError](err); ok {
		if e.Param != nil {
			parameter = *e.Param
		}
		status, text = e.HTTPStatusCode, e.Message
	} else if e, ok := errors.AsType[*openai.RequestError](err); ok {
		status, text = e.HTTPStatusCode, string(e.Body)
	} else if e, ok := errors.AsType[*refused](err); ok {
		status, text = e.status, e.said
	}
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented:
		return strings.ToLower(fmt.Sprint(parameter, " ", text)), true
	}
	return "", status > 0
}
