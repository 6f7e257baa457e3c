package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
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

// TestARecordThatFillsTheWindow: a record that the context window cut off is asked for again, with a shorter history.
func TestARecordThatFillsTheWindow(t *testing.T) {
	t.Parallel()
	const window = 1500
	asked, cut := 0, 0
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		prompt := len(body) / 4
		switch {
		case bytes.Contains(body, []byte(`"compaction":{`)):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"compaction: not permitted"}}`)
			return
		case prompt+100 > window:
			cut++
			_, _ = fmt.Fprintf(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"CURRENT_STATE: st"}],`+
				`"stop_reason":"model_context_window_exceeded","usage":{"input_tokens":%d,"output_tokens":%d}}`, prompt, window-prompt)
			return
		}
		asked++
		_, _ = fmt.Fprintf(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"CURRENT_STATE: stage 7 fails."}],`+
			`"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":9}}`, prompt)
	}))
	defer up.Close()
	r := newRig(t, setup{
		base: up.URL + "/v1", dialect: messagesapi.New(split.Options{}), condenser: condense.ConversationWindow{},
	})
	resp, answer := r.ask(`{"max_tokens":100,"compaction":{"type":"summarize"},` + messages(turns("ships", 12)[1:]...)[1:])
	if resp.StatusCode != http.StatusOK || asked != 1 || cut != 1 || !strings.Contains(answer, `"compaction"`) {
		t.Errorf("%d after %d records cut off and %d asked for: %s", resp.StatusCode, cut, asked, answer)
	}
}
