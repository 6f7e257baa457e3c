package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/gemini"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// google is a client of Gemini's API that runs tools.
type google struct {
	*rig
	streams bool
	history []string // contents
}

func newGoogle(t *testing.T, streams bool, s setup) *google {
	d := gemini.New(split.Options{})
	s.dialect = d
	r := newRig(t, s)
	live := r.live
	live.Dialects = map[string]dialect.Dialect{gemini.GeneratePath: d, gemini.StreamPath: d}
	live.Counts = map[string]dialect.Dialect{gemini.CountPath: d}
	r.server.Swap(live)
	return &google{rig: r, streams: streams}
}

// send sends the history to a method and returns the answer.
func (g *google) send(method string) (http.Header, string) {
	g.t.Helper()
	body := `{"contents":[` + strings.Join(g.history, ",") + `],"tools":[{"functionDeclarations":[{"name":"run"}]}],"systemInstruction":{"parts":[{"text":"You run tools."}]}}`
	resp, err := g.client.Post("http://"+g.addr+"/v1/models/gemini-3-pro:"+method, "application/json", strings.NewReader(body))
	must(g.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(g.t, err)
	if resp.StatusCode != http.StatusOK {
		g.t.Fatalf("status %d: %s", resp.StatusCode, text)
	}
	return resp.Header, string(text)
}

// step sends the history and another content, and keeps the answer with the results of its calls. It returns the calls.
func (g *google) step(content string) (header http.Header, calls []string) {
	g.t.Helper()
	if content != "" {
		g.history = append(g.history, content)
	}
	method := "generateContent"
	if g.streams {
		method = "streamGenerateContent?alt=sse"
	}
	header, text := g.send(method)
	var parts, results []json.RawMessage
	for line := range strings.Lines(text) {
		var piece struct {
			Candidates []struct {
				Content struct{ Parts []json.RawMessage }
			}
		}
		if data := strings.TrimPrefix(line, "data: "); json.Unmarshal([]byte(data), &piece) == nil && len(piece.Candidates) > 0 {
			parts = append(parts, piece.Candidates[0].Content.Parts...)
		}
	}
	for _, raw := range parts {
		var p struct{ FunctionCall struct{ ID, Name string } }
		must(g.t, json.Unmarshal(raw, &p))
		if f := p.FunctionCall; f.Name != "" {
			calls = append(calls, f.Name)
			results = append(results, fmt.Appendf(nil, `{"functionResponse":{"id":%q,"name":%q,"response":{"output":%q}}}`, f.ID, f.Name, strings.Repeat("it ran ", 100)))
		}
	}
	answer, err := json.Marshal(map[string]any{"role": "model", "parts": parts})
	must(g.t, err)
	g.history = append(g.history, string(answer))
	if len(results) > 0 {
		content, err := json.Marshal(map[string]any{"role": "user", "parts": results})
		must(g.t, err)
		g.history = append(g.history, string(content))
	}
	return header, calls
}

const goOn = `{"role":"user","parts":[{"text":"go on"}]}`

// TestGeminiAgentAsksForCondensation: the model asks for a condensation by a tool that the client does not see, alone and before a call of the
// client's, whose signature upstream requires. A user's command condenses, too. Upstream refuses nothing, and counts what is forwarded.
func TestGeminiAgentAsksForCondensation(t *testing.T) {
	bothWays(t, func(t *testing.T, streams bool) {
		s := hiding(fakeupstream.Options{Seals: fakeupstream.SealThoughtSignature}, 1000)
		g := newGoogle(t, streams, s)
		condensed := 0
		step := func(content string, want string, answers ...fakeupstream.Answer) {
			t.Helper()
			g.up.Script(answers...)
			header, calls := g.step(content)
			if strings.Join(calls, " ") != want {
				t.Fatalf("calls %v, want %s", calls, want)
			}
			condensed += len(header.Values("X-Dewpoint-Condensed"))
		}
		answer := func(names ...string) (a fakeupstream.Answer) {
			for i, name := range names {
				a.ToolCalls = append(a.ToolCalls, call(name, fmt.Sprintf("call_%d_%d_%d", len(g.history), i, len(names))))
			}
			return a
		}
		step(goOn, "run", answer("run"))
		for range 8 {
			step("", "run", answer("run"))
		}
		step("", "run run", answer("run", "run"))
		step("", "run", answer(asksFor), answer("run"))
		step("", "run", answer(asksFor, "run"))
		step("", "run", answer("run"))
		if condensed == 0 {
			t.Error("nothing was condensed")
		}
		for range 8 {
			step("", "run", answer("run"))
		}
		before := condensed
		step("", "", fakeupstream.Answer{Content: "Done."})
		step(`{"role":"user","parts":[{"text":"/condense"}]}`, "", fakeupstream.Answer{Content: "It is condensed."})
		if condensed == before {
			t.Error("the command did not condense")
		}
		for _, r := range g.up.Requests() {
			if r.Refused != nil {
				t.Errorf("refused: %v", r.Refused)
			}
		}
		g.history = append(g.history, goOn)
		_, text := g.send("countTokens")
		if counted := g.up.Requests(); len(counted[len(counted)-1].Messages) >= len(g.history) || !strings.Contains(text, "totalTokens") {
			t.Errorf("%d contents are counted of %d: %s", len(counted[len(counted)-1].Messages), len(g.history), text)
		}
	})
}

// TestGeminiErrorsAreGoogles: what Dewpoint refuses has the form of Google's errors, and an explicit cache is left alone.
func TestGeminiErrorsAreGoogles(t *testing.T) {
	g := newGoogle(t, false, setup{})
	post := func(body string) (*http.Response, string) {
		resp, err := g.client.Post("http://"+g.addr+"/v1/models/gemini-3-pro:generateContent", "application/json", strings.NewReader(body))
		must(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		return resp, string(text)
	}
	if resp, text := post(`{"contents":[],"contents":[]}`); resp.StatusCode != 400 || !strings.Contains(text, `"status":"INVALID_ARGUMENT"`) {
		t.Errorf("%s: %s", resp.Status, text)
	}
	for range 2 {
		resp, text := post(`{"contents":[` + goOn + `],"cachedContent":"cachedContents/c"}`)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Dewpoint-Unread") != "unsupported" {
			t.Errorf("%s %v: %s", resp.Status, resp.Header, text)
		}
	}
	if n := g.logs.FilterMessageSnippet("is forwarded as it is").Len(); n != 1 {
		t.Errorf("said %d times", n)
	}
}
