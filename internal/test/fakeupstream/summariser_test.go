package fakeupstream_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

func contentOf(t *testing.T, answer string) string {
	t.Helper()
	var got struct {
		Choices []struct {
			Message struct {
				Content   string
				ToolCalls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatal(err)
	}
	m := got.Choices[0].Message
	if len(m.ToolCalls) > 0 {
		return m.ToolCalls[0].Function.Name + m.ToolCalls[0].Function.Arguments
	}
	return m.Content
}

func summaryRequest(model, text, members string) string {
	content, _ := json.Marshal(text)
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%s}]%s}`, model, content, members)
}

func TestSummariserIsRecognised(t *testing.T) {
	s := start(t, fakeupstream.Options{
		ContextWindow:    1000,
		SummariserModels: []string{"cheap"},
		IsSummary:        func(r *fakeupstream.Request) bool { return strings.HasPrefix(r.Text(), "Summarise") },
		Summarise: func(r *fakeupstream.Request) fakeupstream.Answer {
			return fakeupstream.Answer{Content: "S: " + r.Text()}
		},
	})
	s.Script(fakeupstream.Answer{Content: "scripted"})
	for _, c := range []struct{ model, text, want string }{
		{"cheap", "x", "S: x"},
		{"main", "Summarise y", "S: Summarise y"},
		{"main", "z", "scripted"},
		{"main", "z", "Understood."},
	} {
		if got := contentOf(t, askBody(t, s, summaryRequest(c.model, c.text, ""))); got != c.want {
			t.Errorf("%s %s: %q", c.model, c.text, got)
		}
	}
	for _, body := range []string{`{"model":"cheap","messages":[]}`, summaryRequest("cheap", strings.Repeat("x", 5000), "")} {
		if status, _ := ask(t, s, body); status != 400 {
			t.Errorf("status %d", status)
		}
	}
	if got := s.SummariserCalls(); got != 2 {
		t.Errorf("%d calls of the summariser, want 2: refused ones do not count", got)
	}
	var flags []bool
	for _, r := range s.Requests() {
		flags = append(flags, r.Summary)
	}
	if want := []bool{true, true, false, false, false, false}; !slices.Equal(flags, want) {
		t.Errorf("%v", flags)
	}
}

func extractor(t *testing.T) *fakeupstream.Server {
	return start(t, fakeupstream.Options{SummariserModels: []string{"cheap"}})
}

func TestExtract(t *testing.T) {
	s := extractor(t)
	prompt := "Summarise.\nmore of it\n\n  Event 1: a user\nline two\n\n\nEvent 2: " + strings.Repeat("é", 200) + "\nrest\n"
	got := contentOf(t, askBody(t, s, summaryRequest("cheap", prompt, "")))
	if want := "CURRENT_STATE: Summarise.\nEvent 1: a user\nEvent 2: " + strings.Repeat("é", 110) + "…"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if again := contentOf(t, askBody(t, s, summaryRequest("cheap", prompt, ""))); again != got {
		t.Error("another summary for the same prompt")
	}
}

func TestExtractIsBounded(t *testing.T) {
	s := extractor(t)
	var prompt strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&prompt, "Section %d of the run\nwith more text below it\n\n", i)
	}
	got := contentOf(t, askBody(t, s, summaryRequest("cheap", prompt.String(), "")))
	if n := utf8.RuneCountInString(got); n > 2020 || n < 1900 {
		t.Errorf("%d characters", n)
	}
	if !strings.HasPrefix(got, "CURRENT_STATE: Section 0 ") || !strings.HasSuffix(got, "Section 999 of the run") {
		t.Errorf("%.40q ... %q", got, got[len(got)-40:])
	}
}

func TestExtractFillsAForcedFunction(t *testing.T) {
	const tools = `,"tools":[{"type":"function","function":{"name":"create_state_summary","parameters":{"type":"object","properties":{
		"user_context":{"type":"string"},"files":{"type":"array","items":{"type":"string"}},"done":{"type":["boolean","null"]},
		"count":{"type":"integer"},"state":{"type":"string","enum":["open","closed"]},"tests":{"type":"string"}}}}}],
		"tool_choice":`
	for _, choice := range []string{`"required"`, `{"type":"function","function":{"name":"create_state_summary"}}`} {
		got := contentOf(t, askBody(t, extractor(t), summaryRequest("cheap", "goal: fix it\n\nran tests\n", tools+choice)))
		name, arguments, _ := strings.Cut(got, "{")
		// Six properties share three lines.
		want := `{"user_context":"goal: fix it","files":["goal: fix it","ran tests"],"done":false,"count":0,"state":"open","tests":""}`
		if filled := "{" + arguments; name != "create_state_summary" || filled != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestExtractRanksEvents(t *testing.T) {
	const format = `,"response_format":{"type":"json_schema","json_schema":{"name":"ranking","strict":true,"schema":{"type":"object",
		"additionalProperties":false,"required":["ids"],"properties":{"ids":{"type":"array","items":{"type":"integer"}}}}}}`
	prompt := "Rank.\n\nID: 4, Message: a\n<event id=\"7\">\nEvent 12\nid=4 again, 99 bottles"
	got := contentOf(t, askBody(t, extractor(t), summaryRequest("cheap", prompt, format)))
	if got != `{"ids":[12,7,4]}` {
		t.Errorf("%s", got)
	}
}
