package summariser

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// Service is a condense.Summariser for condense.NewCustom that calls an HTTP service: the question is the body of a POST, and the answer
// is the body of a response with status 200. Safe for concurrent use.
type Service struct {
	Client  *http.Client // nil: http.DefaultClient
	URL     string
	Key     string        // sent as a bearer token, if set
	Timeout time.Duration // of a call; 0: DefaultTimeout
}

var _ condense.Summariser = Service{}

func (s Service) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	call, cancel := context.WithTimeout(ctx, cmp.Or(s.Timeout, DefaultTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(call, http.MethodPost, s.URL, strings.NewReader(r.User))
	if err != nil {
		return condense.Reply{}, callError(ctx, err, s.Key)
	}
	sender := Caller{Client: s.Client}.newSender(condense.Request{Endpoint: condense.Endpoint{APIKey: s.Key}}, false, func() {})
	resp, err := sender.do(req)
	if err != nil {
		return condense.Reply{}, callError(ctx, err, s.Key)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return condense.Reply{}, &condense.CallError{Kind: failure(resp.StatusCode), Status: resp.StatusCode}
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		if call.Err() != nil && ctx.Err() == nil {
			return condense.Reply{}, &condense.CallError{Kind: condense.FailureTimeout, Err: context.DeadlineExceeded}
		}
		return condense.Reply{}, callError(ctx, err, s.Key)
	}
	return condense.Reply{Text: string(text)}, nil
}
