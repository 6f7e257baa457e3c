package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	messagesapi "github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// TestOnlyWholeRecordsAreSealed: an answer that was refused or cut off does not become the client's compaction. Excerpts take its place, if
// there is anything to quote.
func TestOnlyWholeRecordsAreSealed(t *testing.T) {
	t.Parallel()
	const written = "CURRENT_STATE: stage 7 fails."
	for _, reason := range []string{"end_turn", "max_tokens", "model_context_window_exceeded", "refusal", "pause_turn"} {
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(`"compaction":{`)) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"compaction: not permitted"}}`)
				return
			}
			_, _ = fmt.Fprintf(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":%q}],"stop_reason":%q}`, written, reason)
		}))
		r := newRig(t, setup{base: up.URL + "/v1", dialect: messagesapi.New(split.Options{})})
		const wish = `{"max_tokens":100,"compaction":{"type":"summarize"},`
		resp, answer := r.ask(wish + messages(turns("ships", 9)[1:]...)[1:])
		record, err := r.engine.Unseal(t.Context(), r.live.Tenants[0].Name, sealedIn.FindString(answer))
		must(t, err)
		whole := reason == "end_turn"
		excerpts := strings.Contains(record, "9 messages were removed without a summary") && strings.Contains(record, "ships 8")
		if resp.StatusCode != http.StatusOK || strings.Contains(record, written) != whole || excerpts == whole {
			t.Errorf("%s: %d %s", reason, resp.StatusCode, record)
		}
		if !whole {
			if resp, answer := r.ask(wish + `"messages":[]}`); resp.StatusCode != http.StatusBadGateway || !strings.Contains(answer, "compaction_failed") {
				t.Errorf("%s: without a history: %d %s", reason, resp.StatusCode, answer)
			}
		}
		up.Close()
	}
}

var sealedIn = regexp.MustCompile(`dewpoint\.1\.[A-Za-z0-9_-]+`)

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
