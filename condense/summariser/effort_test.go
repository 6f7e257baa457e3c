package summariser_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
)

// TestConfiguredEffortIsSentInEachProtocol: the effort stands where the protocol has it.
func TestConfiguredEffortIsSentInEachProtocol(t *testing.T) {
	for api, want := range map[string]string{
		"chat": `"reasoning_effort":"low"`, "responses": `"reasoning":{"effort":"low"}`, "messages": `"output_config":{"effort":"low"}`,
	} {
		var body string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var sent map[string]any
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				t.Error(err)
			}
			text, _ := json.Marshal(sent)
			body = string(text)
			w.WriteHeader(http.StatusTeapot)
			io.WriteString(w, "{}")
		}))
		r := request(server.URL, "some-model")
		r.Endpoint.Way.API = api
		_, err := summariser.Caller{Effort: "low"}.Summarise(t.Context(), r)
		server.Close()
		if err == nil || !strings.Contains(body, want) {
			t.Errorf("%s: sent %s, want %s in it (%v)", api, body, want, err)
		}
	}
}
