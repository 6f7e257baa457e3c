package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// wire is one captured request and its answer.
type wire struct {
	Path    string
	File    string
	Headers map[string]string
	Answer  struct {
		Status    int
		Text      string
		ToolCalls []struct{ ID, Name, Arguments string } `json:"tool_calls"`
		Parts     []struct {
			FunctionCall struct {
				ID, Name string
				Args     json.RawMessage
			}
		}
	}
	body []byte
}

// readCapture reads the requests of a folder: headers.json and the bodies that it names.
func readCapture(t *testing.T, folder string) []wire {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "headers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var capture struct{ Requests []wire }
	if err := json.Unmarshal(data, &capture); err != nil {
		t.Fatal(err)
	}
	for i := range capture.Requests {
		if capture.Requests[i].body, err = os.ReadFile(filepath.Join(folder, capture.Requests[i].File)); err != nil {
			t.Fatal(err)
		}
	}
	return capture.Requests
}

// namer names sessions by letters and the threads in each by numbers, in order of appearance, as a person would. It remembers them
// across runs.
type namer struct {
	sessions, threads map[string]string
	counts            map[string]int
}

func newNamer() *namer {
	return &namer{sessions: map[string]string{}, threads: map[string]string{}, counts: map[string]int{}}
}

func (n *namer) name(session, thread string) string {
	if session == "" {
		return "-"
	}
	if _, ok := n.sessions[session]; !ok {
		n.sessions[session] = string(rune('A' + len(n.sessions)))
	}
	s := n.sessions[session]
	if _, ok := n.threads[thread]; !ok {
		n.counts[s]++
		n.threads[thread] = fmt.Sprintf("%s%d", s, n.counts[s])
	}
	return n.threads[thread]
}

// If a capture continues from an answer that upstream stores, the stand-in's answer has a different id, and its calls have the
// ids that the results refer to.
var (
	previous = regexp.MustCompile(`"previous_response_id":\s*"[^"]*"`)
	called   = regexp.MustCompile(`"call_id":\s*"([^"]*)"`)
	kept     = regexp.MustCompile(`"id":"(resp_\w+)"`)
)

// exchangeAll sends captured requests through the stage's proxy and names the session and thread of each.
func exchangeAll(t *testing.T, stage *Stage, names *namer, requests []wire) string {
	t.Helper()
	var out []string
	var answered []byte // the id of the last answer that upstream stores
	for i, w := range requests {
		if i+1 < len(requests) && previous.Match(requests[i+1].body) {
			for n, id := range called.FindAllSubmatch(requests[i+1].body, len(w.Answer.ToolCalls)) {
				w.Answer.ToolCalls[n].ID = string(id[1])
			}
		}
		if answered != nil {
			w.body = previous.ReplaceAll(w.body, slices.Concat([]byte(`"previous_response_id":"`), answered, []byte{'"'}))
		}
		if path, _, _ := strings.Cut(w.Path, "?"); slices.ContainsFunc([]string{"/chat/completions", "/messages", "/responses", "enerateContent"}, func(end string) bool { return strings.HasSuffix(path, end) }) {
			stage.Upstream.Script(w.answer())
		}
		req, err := http.NewRequest(http.MethodPost, strings.TrimSuffix(stage.URL(), "/v1")+w.Path, bytes.NewReader(w.body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range w.Headers {
			switch strings.ToLower(k) {
			case "host", "content-length", "connection", "accept-encoding":
			case "authorization":
				req.Header.Set(k, "Bearer one-key")
			default:
				req.Header.Set(k, v)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
		if id := kept.FindSubmatch(text); id != nil {
			answered = id[1]
		}
		resp.Body.Close()
		if name := resp.Header.Get("X-Dewpoint-Session"); name != "" && w.Answer.Status > 0 && resp.StatusCode != w.Answer.Status {
			t.Fatalf("request %d: status %d, want %d: %s", i+1, resp.StatusCode, w.Answer.Status, text)
		}
		out = append(out, names.name(resp.Header.Get("X-Dewpoint-Session"), resp.Header.Get("X-Dewpoint-Thread")))
	}
	return strings.Join(out, " ")
}

func (w *wire) answer() fakeupstream.Answer {
	if w.Answer.Status >= 400 {
		return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: w.Answer.Status, Message: "scripted"}}
	}
	a := fakeupstream.Answer{Content: w.Answer.Text}
	for i, c := range w.Answer.ToolCalls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d", i)
		}
		a.ToolCalls = append(a.ToolCalls, fakeupstream.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	for _, p := range w.Answer.Parts {
		if f := p.FunctionCall; f.Name != "" {
			a.ToolCalls = append(a.ToolCalls, fakeupstream.ToolCall{ID: f.ID, Name: f.Name, Arguments: string(f.Args)})
		}
	}
	return a
}

func newTestStage(t *testing.T) *Stage {
	t.Helper()
	stage, err := NewStage(*config.Default(), fakeupstream.Options{}, Encoders)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	})
	return stage
}

// captured lists the names that a person would give the requests of each captured run: a letter for the session, a number for the
// thread in it. A dash is a request without a history, which is passed through.
var captured = []struct{ run, want string }{
	{"claude-code--long", strings.TrimSpace(strings.Repeat("A1 ", 29))},
	{"cline", "A1 A1 A1 A1 A1 A1 A1"},
	{"cline--long", "A1 A1 A2 A2"}, // the client truncated old tool results, so the history differs from there on
	{"cn", "A1 A1 A1 A1 A1 A1 A1"},
	{"cn--resume", "A1 A1 A1"},
	{"cn--tui", "A1 A1 A2 A1 A1 A1 A1"}, // a title
	{"codex", "A1 A1 A1 A1 A1 A1 A1"},
	{"codex--long", strings.TrimSpace(strings.Repeat("A1 ", 29))},
	{"codex--resume", "A1 A1 A1"},
	{"codex--subagent", "A1 A1 A1 A2 A1 A2"},
	{"codex--tui", "A1 B1 A1 A1 A1 A1 A1"}, // a title, under other ids
	{"gemini-cli", strings.TrimSpace(strings.Repeat("A1 ", 26))},
	{"gemini-cli--auto", "A1 B1 B1 B1 B1 B1"}, // the choice of a model, without an id
	{"gemini-cli--resume", "A1 B1 B1 B1 B1"},
	{"opencode", "A1 A2 A2 A2 A2 A2 A2 A2"},                     // a title, then the run
	{"opencode--anthropic", "A1 A2 A2 A2 A2"},                   // a title
	{"opencode--ctx400", "A1 A2 A2 A2 A3 A4 A4 A4 A4 A4 A4 A4"}, // the client compacted its history
	{"opencode--err429", "A1 A2 A2 A2 A2 A2 A2 A2 A2 A2"},
	{"opencode--midnight", "A1 A2 A2 A2 A2 A2 A2"},
	{"opencode--responses", "A1 A2 A2 A2 A2"}, // a title
	{"opencode--resume", "A1 A1 A1"},
	{"opencode--subagent", "A1 A2 A2 A3 A3 A3 A2 A2"},
	{"opencode--tui", "A1 A2 A2 A2 A2 A2 A2"},
	{"pi", "A1 A1 A1 A1 A1 A1 A1"},
	{"pi--anthropic", "A1 A1 A1 A1"},
	{"pi--responses", "A1 A1 A1 A1"},
	{"qwen", "A1 A1 A1 A1 A1 A1 A1"},
	{"qwen--resume", "A1 A1 A1"},
	{"qwen--subagent", "A1 A1 A1 A2 A1 A2 A2 A1"},
	{"qwen--tui", "A1 A1 A1 A2 A1 A1 A1 A3"}, // suggestions for the user's next message
	{"sdk-langchain--invoke", "A1 A1 A1 A1"},
	{"sdk-openai--loop", "A1 A1 A1 A1"},
	{"sdk-openai--responses", "A1 A1 A1 A1"}, // upstream stores the history
	{"sdk-openai--stream", "A1 A1 A1 A1"},
	{"sdk-openai-agents--chat-stream", "A1 A1 A1 A1"},
	{"sdk-vercel-ai--stream", "A1 A1 A1 A1"},
}

// together lists runs in one store with one key, one after another: only resumed runs continue.
var together = []struct{ run, want string }{
	{"cline", "A1 A1 A1 A1 A1 A1 A1"},
	{"cn", "B1 B1 B1 B1 B1 B1 B1"},
	{"cn--resume", "B1 B1 B1"},
	{"cn--tui", "C1 C1 C2 C1 C1 C1 C1"},
	{"opencode", "D1 D2 D2 D2 D2 D2 D2 D2"},
	{"opencode--resume", "D2 D2 D2"},
	{"opencode--subagent", "E1 E2 E2 E3 E3 E3 E2 E2"},
	{"pi", "F1 F1 F1 F1 F1 F1 F1"},
	{"qwen", "G1 G1 G1 G1 G1 G1 G1"},
	{"qwen--resume", "G2 G2 G2"}, // the client rewrote the first message: another history of the same session
	{"qwen--subagent", "H1 H1 H1 H2 H1 H2 H2 H1"},
	{"qwen--tui", "I1 I1 I1 I2 I1 I1 I1 I3"},
	{"sdk-langchain--invoke", "J1 J1 J1 J1"},
	{"sdk-openai--loop", "K1 K1 K1 K1"},
	{"sdk-openai--stream", "L1 L1 L1 L1"},
	{"sdk-openai-agents--chat-stream", "M1 M1 M1 M1"},
	{"sdk-vercel-ai--stream", "N1 N1 N1 N1"},
	{"codex", "O1 O1 O1 O1 O1 O1 O1"},
	{"codex--subagent", "P1 P1 P1 P2 P1 P2"},
	{"codex--resume", "O1 O1 O1"},
	{"gemini-cli--auto", "Q1 R1 R1 R1 R1 R1"},
	{"gemini-cli--resume", "S1 R1 R1 R1 R1"},
	{"pi", "T1 F1 F1 F1 F1 F1 F1"}, // a repeated first prompt begins a new history; a known history continues
}

// capturesVariable is the environment variable with the folder of captured runs.
const capturesVariable = "DEWPOINT_CAPTURES"

func TestCaptures(t *testing.T) {
	root := os.Getenv(capturesVariable)
	if root == "" {
		t.Skip("SKIPPED: set " + capturesVariable + " to a folder with captured runs; TestIdentity proves the same shapes")
	}
	for _, c := range captured {
		t.Run(c.run, func(t *testing.T) {
			got := exchangeAll(t, newTestStage(t), newNamer(), readCapture(t, filepath.Join(root, c.run)))
			if got != c.want {
				t.Errorf("\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("together", func(t *testing.T) {
		stage, names := newTestStage(t), newNamer()
		for _, c := range together {
			if got := exchangeAll(t, stage, names, readCapture(t, filepath.Join(root, c.run))); got != c.want {
				t.Errorf("%s:\ngot  %s\nwant %s", c.run, got, c.want)
			}
		}
	})
}
