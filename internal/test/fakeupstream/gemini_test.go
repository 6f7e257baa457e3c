package fakeupstream_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// postGemini sends a body to a method of Gemini's API, and returns the status and the answer.
func postGemini(t *testing.T, s *fakeupstream.Server, method, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(s.URL()+"/v1beta/models/gemini-3-pro:"+method, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// TestGeminiRefuses: requests that Gemini's API refuses are refused in its words, and others are not.
func TestGeminiRefuses(t *testing.T) {
	const (
		ask    = `{"role":"user","parts":[{"text":"go"}]}`
		said   = `{"role":"model","parts":[{"text":"so"}]}`
		call   = `{"role":"model","parts":[{"functionCall":{"name":"a","args":{}}},{"functionCall":{"name":"b","args":{}}}]}`
		result = `{"functionResponse":{"name":"a","response":{"output":"x"}}}`
		other  = `{"functionResponse":{"name":"b","response":{"output":"x"}}}`
	)
	both := `{"role":"user","parts":[` + result + `,` + other + `]}`
	for contents, want := range map[string]string{
		ask: "", ask + `,` + said + `,` + ask: "", ask + `,` + call + `,` + both: "", ask + `,` + ask + `,` + call + `,` + both + `,` + ask: "",
		ask + `,` + said + `,` + call + `,` + both: "", // the parts of a stream
		``: "contents is not specified",
		`{"role":"assistant","parts":[{"text":"a"}]}`:                                "valid role",
		`{"role":"user","parts":[]}`:                                                 "must not be empty",
		`{"role":"user","parts":[{"thought":true}]}`:                                 "required oneof field",
		`{"role":"user","parts":[{"functionResponse":{"name":"a","response":"x"}}]}`: "function_response.response",
		call + `,` + both:            "comes immediately after a user turn",
		ask + `,` + both:             "comes immediately after a function call turn",
		both:                         "comes immediately after a function call turn",
		ask + `,` + call + `,` + ask: "comes immediately after a function call turn",
		ask + `,` + call + `,{"role":"user","parts":[` + result + `]}`:               "number of function response parts",
		ask + `,` + call + `,{"role":"user","parts":[` + other + `,` + result + `]}`: "does not match",
		ask + `,` + said: "end with a user turn",
		`{"role":"user","parts":[{"text":"go"}],"note":1}`: "Unknown name",
	} {
		s := start(t, fakeupstream.Options{Strict: true})
		status, answer := postGemini(t, s, "generateContent", `{"contents":[`+contents+`]}`)
		var e struct {
			Error struct {
				Code            int
				Message, Status string
			}
		}
		_ = json.Unmarshal([]byte(answer), &e)
		if want == "" && status != http.StatusOK || want != "" && (status != http.StatusBadRequest || e.Error.Code != 400 || e.Error.Status != "INVALID_ARGUMENT" || !strings.Contains(e.Error.Message, want)) {
			t.Errorf("%s: %d %s, want %s", contents, status, answer, want)
		}
	}
	for tools, want := range map[string]string{
		`[{"functionDeclarations":[{"name":"a"},{"name":"a"}]}]`:                            "Duplicate",
		`[{"functionDeclarations":[{"name":"a"}]},{"functionDeclarations":[{"name":"b"}]}]`: "Multiple tools",
	} {
		if status, answer := postGemini(t, start(t, fakeupstream.Options{}), "generateContent", `{"contents":[`+ask+`],"tools":`+tools+`}`); status != 400 || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s", tools, status, answer)
		}
	}
	s := start(t, fakeupstream.Options{ContextWindow: 3})
	if status, answer := postGemini(t, s, "generateContent", `{"contents":[`+ask+`]}`); status != 400 || !strings.Contains(answer, "exceeds the maximum number of tokens allowed (3)") {
		t.Errorf("%d %s", status, answer)
	}
}

// TestGeminiNeedsSignatures: in the current turn, the first call of each step needs its signature. Before that, it may be missing, but not wrong.
func TestGeminiNeedsSignatures(t *testing.T) {
	s := start(t, fakeupstream.Options{Seals: fakeupstream.SealThoughtSignature})
	s.Script(fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: "x", Name: "a", Arguments: "{}"}, {ID: "y", Name: "b", Arguments: "{}"}}})
	_, answer := postGemini(t, s, "generateContent", `{"contents":[{"role":"user","parts":[{"text":"go"}]}]}`)
	var got struct {
		Candidates []struct{ Content json.RawMessage }
	}
	if json.Unmarshal([]byte(answer), &got) != nil || strings.Count(answer, "thoughtSignature") != 1 {
		t.Fatalf("got %s", answer)
	}
	signed := string(got.Candidates[0].Content)
	from := strings.Index(signed, `,"thoughtSignature"`)
	bare := signed[:from] + signed[from+strings.Index(signed[from:], "}"):]
	wrong := strings.Replace(signed, `"thoughtSignature":"`, `"thoughtSignature":"x`, 1)
	const (
		ask     = `{"role":"user","parts":[{"text":"go"}]}`
		results = `{"role":"user","parts":[{"functionResponse":{"id":"x","name":"a","response":{}}},{"functionResponse":{"id":"y","name":"b","response":{}}}]}`
	)
	for contents, want := range map[string]string{
		ask + "," + signed + "," + results:           "",
		ask + "," + bare + "," + results:             "missing a thought_signature",
		ask + "," + wrong + "," + results:            "Corrupted",
		ask + "," + bare + "," + results + "," + ask: "",
	} {
		if status, answer := postGemini(t, s, "generateContent", `{"contents":[`+contents+`]}`); (status == http.StatusOK) != (want == "") || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s", contents, status, answer)
		}
	}
}

// TestGeminiStreams: a stream comes as events or as a list of the same pieces, with the usage at its end.
func TestGeminiStreams(t *testing.T) {
	for method, prefix := range map[string]string{"streamGenerateContent?alt=sse": "data: {", "streamGenerateContent": "[{", "generateContent": "{"} {
		s := start(t, fakeupstream.Options{})
		s.Script(fakeupstream.Answer{Content: "a text of several pieces", ToolCalls: []fakeupstream.ToolCall{{ID: "x", Name: "a", Arguments: "{}"}}})
		_, answer := postGemini(t, s, method, `{"contents":[{"role":"user","parts":[{"text":"go"}]}]}`)
		pieces := strings.Count(answer, `"candidates"`)
		if !strings.HasPrefix(answer, prefix) || strings.Count(answer, "promptTokenCount") != 1 || (pieces > 2) != (method != "generateContent") {
			t.Errorf("%s: %s", method, answer)
		}
	}
	if _, answer := postGemini(t, start(t, fakeupstream.Options{}), "countTokens", `{"contents":[{"role":"user","parts":[{"text":"go"}]}]}`); !strings.Contains(answer, `{"totalTokens":9}`) {
		t.Error(answer)
	}
}
