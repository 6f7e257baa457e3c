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
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
)

// sender sends the request of one call. It bounds the response, and calls progress for each sign of life from the server.
type sender struct {
	client   *http.Client
	to       condense.Endpoint
	progress func()
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
func (c Caller) newSender(to condense.Endpoint, progress func()) *sender {
	client := *cmp.Or(c.Client, http.DefaultClient)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &sender{client: &client, to: to, progress: progress}
}

// do sends a request to the endpoint.
func (s *sender) do(r *http.Request) (*http.Response, error) {
	if err := address(r, s.to); err != nil {
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, cmp.Or(s.to.BaseURL, openAI+protocolOf(s.to).path), bytes.NewReader(body))
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

// isChat reports whether an endpoint is called with Chat Completions.
func isChat(to condense.Endpoint) bool {
	return to.Way.API != condense.APIMessages && to.Way.API != condense.APIResponses && to.Way.API != condense.APIGemini
}

func (s *sender) isChat() bool { return isChat(s.to) }

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
	if s.isChat() {
		e.text = cmp.Or(strings.TrimSpace(m.Error.Param+" "+m.Error.Message), e.text)
	} else {
		e.code = cmp.Or(e.code, m.Error.Type)
	}
	return e
}

// address sets the URL and the headers of a request as the endpoint requires them.
func address(r *http.Request, to condense.Endpoint) error {
	base, err := url.Parse(to.BaseURL)
	if err != nil {
		return errors.New("invalid base URL") // the cause quotes the URL, which may hold a key
	}
	if to.BaseURL != "" {
		root := strings.TrimSuffix(base.EscapedPath(), "/")
		if agents.Gemini(to.Way.Path) { // it brings its own version
			root = agents.WithoutVersion(root)
		}
		r.URL.RawPath = root + to.Way.Path + protocolOf(to).path
		if r.URL.Path, err = url.PathUnescape(r.URL.RawPath); err != nil {
			return fmt.Errorf("invalid path: %w", err)
		}
		r.URL.RawQuery = strings.Trim(base.RawQuery+"&"+to.Way.Query, "&")
	}
	r.Header.Set("Content-Type", "application/json")
	for line := range strings.Lines(to.Way.Headers + to.Way.Route) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		r.Header.Add(name, value)
	}
	if to.Way.API == condense.APIMessages && r.Header.Get(versionHeader) == "" {
		r.Header.Set(versionHeader, anthropicVersion)
	}
	switch header := keyHeader(to, base); {
	case to.APIKey == "":
	case header == "Authorization":
		r.Header.Set(header, "Bearer "+to.APIKey)
	default:
		r.Header.Set(header, to.APIKey)
	}
	return nil
}

// keyHeader returns the header for the endpoint's key.
func keyHeader(to condense.Endpoint, base *url.URL) string {
	switch {
	case to.Way.KeyHeader != "":
		return to.Way.KeyHeader
	case to.Way.API == condense.APIMessages:
		return "X-Api-Key"
	case to.Way.API == condense.APIGemini:
		return "X-Goog-Api-Key"
	case to.Way.Path != "" || agents.Azure(base):
		return "api-key"
	}
	return "Authorization"
}

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
