package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	messagesapi "github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// TestOnlyWholeRecordsAreSealed: an answer that was refused or cut off does not become the client's compaction.
func TestOnlyWholeRecordsAreSealed(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]int{
		"end_turn": http.StatusOK, "max_tokens": http.StatusBadGateway,
		"model_context_window_exceeded": http.StatusBadGateway, "refusal": http.StatusBadGateway, "pause_turn": http.StatusBadGateway,
	} {
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(`"compaction":{`)) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"compaction: not permitted"}}`)
				return
			}
			_, _ = fmt.Fprintf(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"CURRENT_STATE: stage 7 fails."}],"stop_reason":%q}`, reason)
		}))
		r := newRig(t, setup{base: up.URL + "/v1", dialect: messagesapi.New(split.Options{})})
		resp, answer := r.ask(`{"max_tokens":100,"compaction":{"type":"summarize"},` + messages(turns("ships", 9)[1:]...)[1:])
		up.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d %.200s, want %d", reason, resp.StatusCode, answer, want)
		}
	}
}
