package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

// agentHeader marks the requests of the agent. The proxy forwards the header, and its own calls do not have it.
const agentHeader = "X-Replay"

// received is a request that reached upstream, with its usage.
type received struct {
	*dialect.Request
	usage model.Usage
}

// upstream is a fake provider that speaks all protocols, without streams. It answers a request of the agent with the recorded answer, and a
// call of the proxy with that of standIn, and measures both.
type upstream struct {
	meters map[Protocol]*meter

	mu        sync.Mutex
	answer    json.RawMessage // to the agent's next request
	forwarded []received      // since the last take
	own       []received
}

func newUpstream(c *counter) *upstream {
	u := &upstream{meters: map[Protocol]*meter{}}
	for protocol, w := range wires {
		u.meters[protocol] = newMeter(c, w)
	}
	return u
}

// expect sets the answer to the agent's next request.
func (u *upstream) expect(answer json.RawMessage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer = answer
}

// take returns the requests since the last take: the agent's, as forwarded, and the proxy's own.
func (u *upstream) take() (forwarded, own []received) {
	u.mu.Lock()
	defer u.mu.Unlock()
	forwarded, own = u.forwarded, u.own
	u.forwarded, u.own = nil, nil
	return forwarded, own
}

// meterFor returns the meter of the protocol that a path belongs to, nil if there is none.
func (u *upstream) meterFor(path string) *meter {
	for _, m := range u.meters {
		if strings.HasSuffix(path, m.wire.path()) {
			return m
		}
	}
	return nil
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := u.meterFor(r.URL.Path)
	if r.Method != http.MethodPost || m == nil {
		refuse(w, http.StatusNotFound, "the replay's upstream has no "+r.URL.Path)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	response, err := u.complete(m, body, r.Header.Get(agentHeader) != "")
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(response)
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(assemble.Encode(map[string]any{"error": map[string]string{"message": message, "type": "invalid_request_error"}}))
}

// complete answers a request, and records it.
func (u *upstream) complete(m *meter, body []byte, fromAgent bool) ([]byte, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	answer := u.answer
	if !fromAgent {
		var err error
		if answer, err = standIn(m.wire, body); err != nil {
			return nil, fmt.Errorf("read a call of the proxy: %w", err)
		}
	}
	got := received{}
	var err error
	if got.Request, got.usage, err = m.exchange(body, answer); err != nil {
		return nil, err
	}
	if fromAgent {
		u.forwarded = append(u.forwarded, got)
	} else {
		u.own = append(u.own, got)
	}
	return m.wire.response(got.Model, answer, got.usage), nil
}
