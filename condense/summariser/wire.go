package summariser

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/protocols"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
)

// sender sends the request of one call. It bounds the response, and calls progress for each sign of life from the server.
type sender struct {
	client      *http.Client
	to          condense.Endpoint
	protocol    dialect.Dialect
	path, query string // below the base URL
	progress    func()
}

// protocolOf returns the dialect in which an endpoint is called.
func protocolOf(to condense.Endpoint) dialect.Dialect {
	return protocols.Named(to.Way.API).New(split.Options{})
}

var (
	errResponseSize = errors.New("response too large")
	errBroken       = errors.New("the answer was cut off")
	// errNoEnd means that a stream ended without its last event.
	errNoEnd = fmt.Errorf("%w: its last event is missing", errBroken)
	// errUnreadable means that an answer cannot be used.
	errUnreadable = errors.New("the answer is not a completion")
)

// newSender prepares a call. It follows no redirects: the conversation goes to the configured server only.
func (c Caller) newSender(r condense.Request, streamed bool, progress func()) *sender {
	client := *cmp.Or(c.Client, http.DefaultClient)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s := &sender{client: &client, to: r.Endpoint, protocol: protocolOf(r.Endpoint), progress: progress}
	s.path, s.query = s.protocol.Place(r.Endpoint.Way.Path, dialect.Question{Model: r.Model, Streamed: streamed})
	return s
}

// do sends a request to the endpoint.
func (s *sender) do(r *http.Request) (*http.Response, error) {
	if err := s.address(r); err != nil {
		return nil, err
	}
	response, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	s.progress()
	response.Body = responseBody{http.MaxBytesReader(nil, response.Body, maxResponse), s.progress}
	return response, nil
}

// post sends a body and reads the answer: a stream, if one is requested, or the whole body. With an error it returns what had arrived.
func (s *sender) post(ctx context.Context, body []byte, streamed bool) (a dialect.Answer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, cmp.Or(s.to.BaseURL, openAI+s.path), bytes.NewReader(body))
	if err != nil {
		return a, err // callError wraps it
	}
	resp, err := s.do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	success := resp.StatusCode/100 == 2 // some gateways answer 201
	if streamed && success && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return s.readStream(resp.Body)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil && (success || errors.Is(err, errResponseSize)) {
		return a, err // callError wraps it
	}
	if !success {
		return a, s.refused(resp, text)
	}
	return s.readWhole(text)
}

// openAI is the base URL of endpoints without one.
const openAI = "https://api.openai.com/v1"

// refused is an error reported by the server. status is 0 for an error within an answer if it is not known.
type refused struct {
	status     int
	code, text string
	over       overflow.Overflow // zero if the prompt fits
}

func (e *refused) Error() string { return fmt.Sprintf("the server answered %d", e.status) }

func (s *sender) refused(resp *http.Response, body []byte) error {
	var m struct {
		Error struct{ Type, Code, Param, Message string }
	}
	_ = json.Unmarshal(body, &m) // a body of another form has no code
	over, _ := overflow.Recognise(resp.StatusCode, resp.Header.Get("Content-Type"), body)
	e := &refused{status: resp.StatusCode, code: m.Error.Code, text: string(body), over: over}
	if s.protocol.Servers().Differ {
		e.text = cmp.Or(strings.TrimSpace(m.Error.Param+" "+m.Error.Message), e.text)
	} else {
		e.code = cmp.Or(e.code, m.Error.Type)
	}
	return e
}

// address sets the URL and the headers of a request as the endpoint requires them.
func (s *sender) address(r *http.Request) error {
	base, err := url.Parse(s.to.BaseURL)
	if err != nil {
		return errors.New("invalid base URL") // the cause quotes the URL, which may hold a key
	}
	if s.to.BaseURL != "" {
		root := strings.TrimSuffix(base.EscapedPath(), "/")
		if agents.Gemini(s.path) { // it brings its own version
			root = agents.WithoutVersion(root)
		}
		r.URL.RawPath = root + s.path
		if r.URL.Path, err = url.PathUnescape(r.URL.RawPath); err != nil {
			return fmt.Errorf("invalid path: %w", err)
		}
		r.URL.RawQuery = joined("&", base.RawQuery, s.to.Way.Query, s.query)
	}
	r.Header.Set("Content-Type", "application/json")
	for line := range strings.Lines(s.to.Way.Headers + s.to.Way.Route) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		r.Header.Add(name, value)
	}
	if name, value, _ := strings.Cut(s.protocol.Servers().Header, ":"); name != "" && r.Header.Get(name) == "" {
		r.Header.Set(name, value)
	}
	if s.to.APIKey != "" {
		r.Header.Set(s.key(base))
	}
	return nil
}

// joined joins the texts that are not empty.
func joined(separator string, all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), separator)
}

// key returns the header with the endpoint's key.
func (s *sender) key(base *url.URL) (name, value string) {
	name, value = s.protocol.Key(s.to.APIKey)
	switch {
	case s.to.Way.KeyHeader == bearer:
		return bearer, "Bearer " + s.to.APIKey
	case s.to.Way.KeyHeader != "":
		return s.to.Way.KeyHeader, s.to.APIKey
	case name == bearer && (s.to.Way.Path != "" || agents.Azure(base)):
		return "api-key", s.to.APIKey
	}
	return name, value
}

// bearer is the header in which keys are bearer tokens.
const bearer = "Authorization"

// responseBody reads a body of limited size, whatever Content-Length says, and reports progress.
type responseBody struct {
	io.ReadCloser // by http.MaxBytesReader
	progress      func()
}

func (b responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.progress()
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return n, errResponseSize
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errBroken, err)
	}
	return n, err
}
