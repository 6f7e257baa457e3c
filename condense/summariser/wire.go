package summariser

import (
	"bufio"
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
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
)

// wire is the connection of one call. It bounds what is read and tells of each sign of life.
type wire struct {
	client   *http.Client
	to       condense.Endpoint
	limit    int64
	alive    func()
	streamed bool // an answer in a stream is asked for
}

var (
	errResponseSize = errors.New("response too large")
	errBroken       = errors.New("the answer broke off")
	// errEnded says that a stream ended without its last event.
	errEnded = fmt.Errorf("%w: its last event is missing", errBroken)
	// errUnreadable says that an answer cannot be used.
	errUnreadable = errors.New("the answer is not a completion")
)

// wire prepares the connection of a call. The conversation goes to the server that was configured, and to no other.
func (c Caller) wire(to condense.Endpoint, alive func()) *wire {
	client := http.DefaultClient
	if c.Client != nil {
		client = c.Client
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &wire{client: &own, to: to, limit: cmp.Or(c.MaxResponse, DefaultMaxResponse), alive: alive}
}

// do sends a request.
func (w *wire) do(r *http.Request) (*http.Response, error) {
	if err := address(r, w.to); err != nil {
		return nil, err
	}
	response, err := w.client.Do(r) //nolint:gosec // the URL is configured
	if err != nil {
		return nil, err
	}
	w.alive()
	response.Body = &boundedBody{body: response.Body, left: w.limit, alive: w.alive}
	return response, nil
}

// post asks for an answer, and takes it: the data of each event of a stream until the last one, or the whole.
func (w *wire) post(ctx context.Context, body []byte, to answer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, cmp.Or(w.to.BaseURL, openAI+path(w.to)), bytes.NewReader(body))
	if err != nil {
		return err //nolint:wrapcheck // callError words it
	}
	req.Header.Set("Content-Type", "application/json")
	if w.to.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+w.to.APIKey)
	}
	resp, err := w.do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answered := resp.StatusCode/100 == 2 // some gateways say 201
	if w.streamed && answered && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return readEvents(resp.Body, to.take)
	}
	said, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err //nolint:wrapcheck // callError words it
	case !answered:
		return w.refused(resp.StatusCode, said)
	}
	return to.whole(said)
}

// openAI is where calls go that have no other base URL.
const openAI = "https://api.openai.com/v1"

// refused is an error that a server told. Status is 0 within an answer.
type refused struct {
	status     int
	code, said string
}

func (e *refused) Error() string { return fmt.Sprintf("the server answered %d", e.status) }

func (w *wire) refused(status int, said []byte) error {
	var m struct {
		Error struct{ Type, Code, Param, Message string }
	}
	_ = json.Unmarshal(said, &m) // what is none has no code
	e := &refused{status: status, code: m.Error.Code, said: string(said)}
	if w.to.Way.API == condense.APIMessages || w.to.Way.API == condense.APIResponses {
		e.code = cmp.Or(e.code, m.Error.Type)
	} else {
		e.said = cmp.Or(strings.TrimSpace(m.Error.Param+" "+m.Error.Message), e.said)
	}
	return e
}

func readEvents(from io.Reader, take func(data []byte) (ended bool, err error)) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err //nolint:wrapcheck // callError words it
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			ended, wrong := take(data)
			if cut := err != nil && (errors.Is(wrong, errGarbled) || errors.Is(wrong, errUnreadable)); cut {
				return errEnded // within a line
			}
			if ended || wrong != nil {
				return wrong
			}
		}
		if err != nil {
			return errEnded
		}
	}
}

// address has a call go the way that an endpoint is called.
func address(r *http.Request, to condense.Endpoint) error {
	base, err := url.Parse(to.BaseURL)
	if err != nil {
		return errors.New("call summariser: its base URL is none")
	}
	if to.BaseURL != "" {
		r.URL.RawPath = strings.TrimSuffix(base.EscapedPath(), "/") + to.Way.Path + path(to)
		if r.URL.Path, err = url.PathUnescape(r.URL.RawPath); err != nil {
			return fmt.Errorf("call summariser: %w", err)
		}
		r.URL.RawQuery = strings.Trim(base.RawQuery+"&"+to.Way.Query, "&")
	}
	for line := range strings.Lines(to.Way.Headers + to.Way.Route) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		r.Header.Add(name, value)
	}
	if to.Way.API == condense.APIMessages && r.Header.Get(versionHeader) == "" {
		r.Header.Set(versionHeader, anthropicVersion)
	}
	header := to.Way.KeyHeader
	switch {
	case header != "":
	case to.Way.API == condense.APIMessages:
		header = "X-Api-Key"
	case to.Way.Path != "" || agents.Azure(base):
		header = "api-key"
	}
	if header != "" && header != "Authorization" && to.APIKey != "" {
		r.Header.Del("Authorization")
		r.Header.Set(header, to.APIKey)
	}
	return nil
}

// path is that of the API, below the base URL.
func path(to condense.Endpoint) string {
	switch to.Way.API {
	case condense.APIMessages:
		return "/messages"
	case condense.APIResponses:
		return "/responses"
	}
	return "/chat/completions"
}

// boundedBody makes a response that is too large an error, whatever the server declared.
type boundedBody struct {
	body  io.ReadCloser
	left  int64
	alive func()
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errResponseSize
	}
	p = p[:min(int64(len(p)), b.left+1)]
	n, err := b.body.Read(p)
	if n > 0 {
		b.alive()
	}
	if b.left -= int64(n); b.left < 0 {
		return n, errResponseSize
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errBroken, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error { return b.body.Close() }
