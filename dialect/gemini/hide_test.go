package gemini_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/gemini"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

func hides(tool string) bool { return tool == "recall" }

// TestToolsAreHiddenOnlyWhereCallsCanBe: the client declares functions, leaves the choice to the model, and reads one candidate, whole or as events.
func TestToolsAreHiddenOnlyWhereCallsCanBe(t *testing.T) {
	const declared = `"tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"read"}]}]`
	for members, want := range map[string]bool{
		declared:                        true,
		`"tools":[{"googleSearch":{}}]`: false, `"tools":[{"functionDeclarations":[]}]`: false, `"model":"m"`: false,
		declared + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}`:                                true,
		declared + `,"tool_config":{"function_calling_config":{"mode":"none"}}`:                             false,
		declared + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`:                                 true,
		declared + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["read"]}}`: false,
		declared + `,"toolConfig":{"functionCallingConfig":{"streamFunctionCallArguments":true}}`:           false,
		declared + `,"generationConfig":{"candidateCount":2}`:                                               false,
	} {
		r := splitOf(t, `{"contents":[{"parts":[{"text":"a"}]}],`+members+`}`)
		if got := gemini.New(split.Options{}).CanHideTools(r); got != want {
			t.Errorf("%s: %t", members, got)
		}
	}
	d := gemini.New(split.Options{})
	r, err := d.Split("/models/m:streamGenerateContent", []byte(`{"contents":[{"parts":[{"text":"a"}]}],`+declared+`}`))
	if err != nil || d.CanHideTools(r) {
		t.Errorf("a list of pieces is filtered: %v", err)
	}
}

// TestHiddenCallsAreRemoved: the client gets its own calls only, once, and the signature of a hidden call that came first.
func TestHiddenCallsAreRemoved(t *testing.T) {
	const (
		recall = `{"functionCall":{"name":"recall","args":{}},"thoughtSignature":"c2ln"}`
		read   = `{"functionCall":{"name":"read","args":{}}}`
		signed = `{"functionCall":{"name":"read","args":{}},"thoughtSignature":"b3du"}`
		given  = `{"functionCall":{"name":"read","args":{}},"thoughtSignature":"c2ln"}`
		text   = `{"text":"So."}`
	)
	for name, c := range map[string]struct {
		parts, shown []string
		finish       string
		again        bool // upstream is asked again
	}{
		"no calls":              {[]string{text}, []string{text}, "STOP", false},
		"a hidden one":          {[]string{recall}, nil, "STOP", true},
		"a text and hidden one": {[]string{text, recall}, []string{text}, "STOP", true},
		"one that is shown":     {[]string{signed}, []string{signed}, "STOP", false},
		"hidden first":          {[]string{recall, read}, []string{given}, "STOP", false},
		"hidden last":           {[]string{signed, recall}, []string{signed}, "STOP", false},
		"cut off":               {[]string{recall}, nil, "MAX_TOKENS", false},
	} {
		piece := `{"candidates":[{"content":{"role":"model","parts":[%s]}%s}]}`
		stream := ""
		for _, part := range c.parts {
			stream += fmt.Sprintf("data: "+piece+"\n\n", part, "")
		}
		stream += fmt.Sprintf("data: "+piece+"\n\n", `{"text":""}`, `,"finishReason":"`+c.finish+`"`)
		joined := "data: " + fmt.Sprintf(piece, strings.Join(c.parts, ","), `,"finishReason":"`+c.finish+`"`) + "\n\n"
		whole := fmt.Sprintf(piece, strings.Join(c.parts, ","), `,"finishReason":"`+c.finish+`"`)
		for form, answer := range map[string]string{"stream": stream, "one event": joined, "whole": whole} {
			f := gemini.New(split.Options{}).FilterAnswers(form != "whole", hides)
			got := string(f.Write([]byte(answer)))
			said := f.Close()
			if said.OnlyHidden() != c.again {
				t.Errorf("%s, %s: upstream is asked again: %t", name, form, !c.again)
			}
			if c.again && (len(said.Calls) != 1 || !strings.Contains(string(said.Message), recall)) {
				t.Errorf("%s, %s: said %s", name, form, said.Message)
			}
			got += string(f.Finish())
			if strings.Contains(got, "recall") || strings.Count(got, "finishReason") != 1 || !strings.Contains(got, c.finish) {
				t.Errorf("%s, %s: got %s", name, form, got)
			}
			for _, part := range c.shown {
				if strings.Count(got, part) != 1 {
					t.Errorf("%s, %s: got %s, want %s", name, form, got, part)
				}
			}
		}
	}
}

// TestHiddenCallsNeedNoReason: a call is hidden also in an answer that does not say why it ended, and an answer without any candidate stays.
func TestHiddenCallsNeedNoReason(t *testing.T) {
	for answer, want := range map[string]string{
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"recall"}},{"functionCall":{"name":"read"}}]}}]}`: `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"read"}}]}}]}`,
		`{"promptFeedback":{"blockReason":"SAFETY"}}`:                                                                  `{"promptFeedback":{"blockReason":"SAFETY"}}`,
	} {
		f := gemini.New(split.Options{}).FilterAnswers(false, hides)
		got := string(f.Write([]byte(answer)))
		f.Close()
		if got += string(f.Finish()); got != want {
			t.Errorf("%s: got %s", answer, got)
		}
	}
}

// TestSeveralAnswersBecomeOne: the client receives the text of all answers, the sum of their usage, and one id.
func TestSeveralAnswersBecomeOne(t *testing.T) {
	answers := []string{
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"one"},{"functionCall":{"name":"recall","args":{}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1},"responseId":"a"}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"two"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":2},"responseId":"b"}`,
	}
	for _, streamed := range []bool{false, true} {
		f := gemini.New(split.Options{}).FilterAnswers(streamed, hides)
		got := ""
		for i, answer := range answers {
			if i > 0 {
				f.Next()
			}
			if streamed {
				answer = "data: " + answer + "\n\n"
			}
			got += string(f.Write([]byte(answer)))
			f.Close()
		}
		echo := string(f.Echo())
		got += string(f.Finish())
		if !strings.Contains(got, `"usageMetadata":{"promptTokenCount":30,"candidatesTokenCount":3}`) || strings.Count(got, `"one"`) != 1 || strings.Count(got, `"two"`) != 1 {
			t.Errorf("streamed %t: got %s", streamed, got)
		}
		if streamed && strings.Contains(got, `"b"`) {
			t.Errorf("got two ids: %s", got)
		}
		if echo != `{"role":"model","parts":[{"text":"onetwo"}]}` {
			t.Errorf("streamed %t: the client sends back %s", streamed, echo)
		}
	}
}
