package summariser

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
)

// wire is the connection of one call. It bounds what is read and tells of each sign of life.
type wire struct {
	client   *http.Client
	to       condense.Endpoint
	limit    int64
	alive    func()
	streamed bool   // an answer in a stream is asked for
	whole    []byte // the answer, where it is none all the same
}

var _ openai.HTTPDoer = (*wire)(nil)

var (
	errResponseSize = errors.New("response too large")
	errBroken       = errors.New("the answer broke off")
)

// wire prepares the connection of a call. The conversation goes to the server that was configured, and to no other.
func (c Caller) wire(to condense.Endpoint, alive func(), streamed bool) *wire {
	client := http.DefaultClient
	if c.Client != nil {
		client = c.Client
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &wire{client: &own, to: to, limit: cmp.Or(c.MaxResponse, DefaultMaxResponse), alive: alive, streamed: streamed}
}

// Do implements openai.HTTPDoer.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	if err := address(r, w.to); err != nil {
		return nil, err
	}
	response, err := w.client.Do(r) //nolint:gosec // the URL is configured
	if err != nil {
		return nil, err
	}
	w.alive()
	response.Body = &boundedBody{body: response.Body, left: w.limit, alive: w.alive}
	isStream := strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	if !w.streamed || isStream || response.StatusCode != http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	w.whole, err = io.ReadAll(response.Body)
	response.Body = http.NoBody
	return response, err //nolint:wrapcheck // the body's own
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
