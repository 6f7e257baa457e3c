package gemini_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/dialecttest"
	"github.com/dewpoint-proxy/dewpoint/dialect/gemini"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func splitOf(t dialecttest.TB, body string) *dialect.Request {
	return dialecttest.Split(t, gemini.New(split.Options{}), body)
}

func TestContentsBecomeMessages(t *testing.T) {
	f := func(contents, want string) {
		t.Helper()
		if got := dialecttest.InShort(splitOf(t, `{"contents":[`+contents+`]}`).Messages); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", contents, got, want)
		}
	}
	f(`{"parts":[{"text":"a"}]}`, "user")
	f(`{"role":"user","parts":[{"text":"a"},{"text":"b"}]},{"role":"model","parts":[{"text":"c"}]}`, "user agent")
	f(`{"parts":[{"functionCall":{"id":"A","name":"n","args":{}},"thoughtSignature":"s"},{"function_call":{"id":"B","name":"n"}}],"role":"model"}`, "actionA+B")
	f(`{"role":"model","parts":[{"functionCall":{"name":"n"}},{"functionCall":{"name":"m"}},{"functionCall":{"name":"n"}}]}`,
		"actionfunctions.n:0+functions.m:0+functions.n:1")
	f(`{"role":"user","parts":[{"functionResponse":{"id":"A","name":"n"}},{"text":"a"}, {"inlineData":{}},{"function_response":{"id":"B","name":"n"}}]}`,
		"observationA user observationB")
	f(`{"role":"function","parts":[{"functionResponse":{"name":"n","response":{}}}]}`, "observationfunctions.n:0")
}

// TestResultsFindTheirCalls: results without ids belong to the calls of the message before them by name and order, also if only one side has ids.
func TestResultsFindTheirCalls(t *testing.T) {
	f := func(calls, results, want string) {
		t.Helper()
		body := `{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"id":"old","name":"n"}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"old","name":"n"}}]},{"role":"model","parts":[` + calls + `]},` + results + `]}`
		all := splitOf(t, body).Messages
		var got []string
		for _, m := range all[4:] {
			got = append(got, m.Result)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s %s: got %s, want %s", calls, results, got, want)
		}
		if u := session.Units(all[3:]); len(u) != 1 || u[0].Open {
			t.Errorf("%s %s: units %+v", calls, results, u)
		}
	}
	call := func(name, id string) string { return `{"functionCall":{"name":"` + name + `"` + id + `}}` }
	result := func(name, id string) string { return `{"functionResponse":{"name":"` + name + `"` + id + `}}` }
	one := func(parts ...string) string { return `{"role":"user","parts":[` + strings.Join(parts, ",") + `]}` }
	f(call("n", "")+","+call("m", "")+","+call("n", ""), one(result("n", ""), result("n", ""), result("m", "")), "functions.n:0 functions.n:1 functions.m:0")
	f(call("n", "")+","+call("n", ""), one(result("n", ""))+","+one(result("n", "")), "functions.n:0 functions.n:1")
	f(call("n", `,"id":"A"`)+","+call("n", `,"id":"B"`), one(result("n", ""), result("n", "")), "A B")
	f(call("n", `,"id":"A"`)+","+call("n", `,"id":"B"`), one(result("n", `,"id":"B"`), result("n", "")), "B A")
	f(call("n", "")+","+call("m", ""), one(result("m", `,"id":"X"`), result("n", `,"id":"Y"`)), "functions.m:0 functions.n:0")
}

func TestUnclearBodiesAreRefusedOrPassUnread(t *testing.T) {
	f := func(body, code, param string) {
		t.Helper()
		_, err := gemini.New(split.Options{}).Split("", []byte(body))
		e, ok := errors.AsType[*dialect.Error](err)
		if !ok || e.Code != code || e.Param != param {
			t.Errorf("%s\ngot %v, want %s %s", body, err, code, param)
		}
	}
	f(`{"contents":[{"role":"user","parts":[],"parts":[]}]}`, dialect.CodeDuplicateKey, "contents[0].parts")
	f(`{"contents":[{"role":"user","parts":[{"text":"a","text":"b"}]}]}`, dialect.CodeDuplicateKey, "contents[0].parts.text")
	f(`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"a","name":"b"}}]}]}`, dialect.CodeDuplicateKey, "contents[0].parts.functionCall.name")
	f(`{"contents":[],"contents":[]}`, dialect.CodeDuplicateKey, "contents")
	f(`{"contents":[{"p\u0061rts":[]}]}`, dialect.CodeEscapedKey, "contents[0].parts")
	f(`{"contents":[{"role":"model","parts":[{"functionCall":{},"function_call":{}}]}]}`, dialect.CodeUnsupported, "contents")
	f(`{"contents":[{"role":"system","parts":[{"text":"a"}]}]}`, dialect.CodeUnsupported, "contents")
	f(`{"contents":[{"role":"user","parts":[{"functionCall":{}}]}]}`, dialect.CodeUnsupported, "contents")
	f(`{"contents":[{"role":"model","parts":[{"functionResponse":{}}]}]}`, dialect.CodeUnsupported, "contents")
	f(`{"contents":[{"role":"user","note":1,"parts":[{"functionResponse":{}}]}]}`, dialect.CodeUnsupported, "contents")
	f(`{"contents":[{"parts":[5]}]}`, dialect.CodeUnsupported, "contents")
	f(`{"contents":[{"parts":{}}]}`, dialect.CodeUnsupported, "contents")
	f(`{"contents":[]}`, dialect.CodeUnsupported, "contents")
	f(`{"contents":"a"}`, dialect.CodeUnsupported, "contents")
	f(`{"contents":[{"parts":[{"text":"a"}]}],"cachedContent":"cachedContents/1"}`, dialect.CodeUnsupported, "cachedContent")
	f(`{"contents":[{"parts":[{"text":"a"}]}],"cachedContent":null,"cached_content":"cachedContents/1"}`, dialect.CodeUnsupported, "cachedContent")
	f(`{"contents":{"role":"user","parts":{"text":"a"}}}`, dialect.CodeUnsupported, "contents")
	f(`{"contents":[`, dialect.CodeInvalidJSON, "")
}

// TestEverySpellingIsRead: a body with underscores is the same conversation as one in camel case. A system instruction in a form that the API
// does not document stays where it is.
func TestEverySpellingIsRead(t *testing.T) {
	camel := `{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[{"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},
		{"role":"model","parts":[{"functionCall":{"name":"n","args":{"a":1}},"thoughtSignature":"x"}]},{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":"o"}}}]}],
		"tools":[{"functionDeclarations":[{"name":"n"}]}],"generationConfig":{"maxOutputTokens":5},"cachedContent":""}`
	snake := strings.NewReplacer("systemInstruction", "system_instruction", "inlineData", "inline_data", "mimeType", "mime_type", "functionCall", "function_call",
		"thoughtSignature", "thought_signature", "functionResponse", "function_response", "functionDeclarations", "function_declarations",
		"generationConfig", "generation_config", "maxOutputTokens", "max_output_tokens", "cachedContent", "cached_content").Replace(camel)
	d := gemini.New(split.Options{})
	a, b := splitOf(t, camel), splitOf(t, snake)
	if got, want := dialecttest.InShort(b.Messages), "system user actionfunctions.n:0 observationfunctions.n:0"; got != want || b.MaxOutput != 5 || !d.CanHideTools(b) {
		t.Errorf("got %s, %+v", got, b)
	}
	for i, m := range b.Messages {
		one, errOne := d.Read(a.Messages[i].Raw)
		other, errOther := d.Read(m.Raw)
		if errOne != nil || errOther != nil || !reflect.DeepEqual(one, other) {
			t.Errorf("message %d: %+v and %+v (%v, %v)", i, one, other, errOne, errOther)
		}
		if i != 1 && m.Digest != a.Messages[i].Digest { // of data only the bytes are compared
			t.Errorf("message %d has another digest", i)
		}
	}
	for _, body := range []string{`{"systemInstruction":"Be brief.","contents":[{"parts":[{"text":"a"}]}]}`, `{"systemInstruction":{"parts":{"text":"b"}},"contents":[{"parts":[{"text":"a"}]}]}`} {
		r := splitOf(t, body)
		if joined := string(slices.Concat(d.Join(r, [][]byte{r.Messages[0].Raw})...)); joined != body || len(r.Messages) != 1 {
			t.Errorf("got %s", joined)
		}
	}
}

func TestTheTargetSaysModelAndStream(t *testing.T) {
	body := `{"contents":[{"parts":[{"text":"a"}]}],"generation_config":{"maxOutputTokens":7,"candidateCount":2},"tools":[{"functionDeclarations":[]}]}`
	for target, want := range map[string]string{
		"/v1beta/models/gemini-3-pro:generateContent":                                                        "gemini-3-pro false false",
		"/models/gemini-3-pro:streamGenerateContent?alt=sse":                                                 "gemini-3-pro true false",
		"/v1beta/models/gemini-3-pro:streamGenerateContent?key=k":                                            "gemini-3-pro false true",
		"/v1beta1/projects/p/locations/l/publishers/google/models/gemini-3:streamGenerateContent?%24alt=sse": "gemini-3 true false",
		"/v1beta/models/a%20b:generateContent":                                                               "a b false false",
	} {
		r, err := gemini.New(split.Options{}).Split(target, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.Model, " ", r.Stream, " ", r.Pieces); got != want || r.MaxOutput != 7 || r.Choices != 2 || string(r.Tools) != `[{"functionDeclarations":[]}]` {
			t.Errorf("%s: got %s, %+v", target, got, r)
		}
	}
}

// TestRequestsInsideAnotherObjectAreRead: Code Assist wraps each request, and countTokens may.
func TestRequestsInsideAnotherObjectAreRead(t *testing.T) {
	const inner = `{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]}],"session_id":"s","tools":[{"functionDeclarations":[{"name":"n"}]}]}`
	for target, body := range map[string]string{
		"/v1internal:streamGenerateContent?alt=sse": `{"model":"gemini-3","project":"p", "request": ` + inner + ` ,"user_prompt_id":"u"}`,
		"/v1beta/models/gemini-3:countTokens":       `{"generateContentRequest":` + inner + `}`,
	} {
		d := gemini.New(split.Options{Fields: []string{"session_id"}})
		r, err := d.Split(target, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if r.Model != "gemini-3" || dialecttest.InShort(r.Messages) != "user agent" || r.Fields["session_id"] != "s" {
			t.Errorf("%s: got %+v", body, r)
		}
		if joined := string(slices.Concat(d.Join(r, [][]byte{r.Messages[0].Raw, r.Messages[1].Raw})...)); joined != body {
			t.Errorf("joined: %s", joined)
		}
		offered := d.Offer(r, []dialect.Tool{{Name: "recall", Parameters: `{}`}})
		if got := string(slices.Concat(d.Join(offered, nil)...)); !d.CanHideTools(r) || !strings.Contains(got, `[{"name":"n"},{"name":"recall","description":"","parametersJsonSchema":{}}]`) || !json.Valid([]byte(got)) {
			t.Errorf("offered: %s", got)
		}
	}
	_, err := gemini.New(split.Options{}).Split("/v1internal:generateContent", []byte(`{"model":"m","request":{"contents":[{"parts":[]}]},"request":{}}`))
	if e, ok := errors.AsType[*dialect.Error](err); !ok || e.Code != dialect.CodeUnsupported {
		t.Errorf("two requests: %v", err)
	}
}

// TestDigestsIgnoreThoughts: thoughts, signatures and empty texts do not count, since clients leave them out, and all else does.
func TestDigestsIgnoreThoughts(t *testing.T) {
	digest := func(content string) session.Hash {
		all := splitOf(t, `{"contents":[`+content+`]}`).Messages
		return all[len(all)-1].Digest
	}
	same := func(all ...string) {
		t.Helper()
		for _, content := range all[1:] {
			if digest(content) != digest(all[0]) {
				t.Errorf("%s\nand %s differ", all[0], content)
			}
		}
	}
	same(`{"parts":[{"text":"a"}]}`, `{"role":"user","parts":[{"text":"\u0061"},{"text":""}]}`)
	same(`{"role":"model","parts":[{"text":"b"}]}`, `{"role":"model","parts":[{"text":"hm","thought":true},{"text":"b","thoughtSignature":"s"}]}`)
	same(`{"role":"model","parts":[{"functionCall":{"name":"n","args":{"a":1,"b":2}}}]}`,
		`{"parts":[{"thought_signature":"s","function_call":{"args":{"b":2,"a":1},"name":"n"}}],"role":"model"}`)
	same(`{"role":"model","parts":[{"functionCall":{"name":"n"}}]}`, `{"role":"model","parts":[{"functionCall":{"name":"n","args":{}}}]}`)
	different := []string{
		`{"parts":[{"text":"a"}]}`, `{"role":"model","parts":[{"text":"a"}]}`, `{"parts":[{"text":"a"},{"text":"b"}]}`, `{"parts":[{"text":"ab"}]}`, `{"parts":[]}`,
		`{"role":"model","parts":[{"functionCall":{"name":"n"}}]}`, `{"role":"model","parts":[{"functionCall":{"name":"n","id":"i"}}]}`,
		`{"role":"model","parts":[{"functionCall":{"name":"n","args":{"a":1}}}]}`, `{"parts":[{"functionResponse":{"name":"n"}}]}`,
		`{"parts":[{"functionResponse":{"name":"n","response":{"output":"a"}}}]}`, `{"parts":[{"functionResponse":{"name":"n","response":{"error":"a"}}}]}`,
		`{"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}`, `{"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAB"}}]}`,
		`{"role":"model","parts":[{"executableCode":{"code":"1"}}]}`, `{"role":"model","parts":[{"executableCode":{"code":"2"}}]}`,
	}
	for i, a := range different {
		for _, b := range different[:i] {
			if digest(a) == digest(b) {
				t.Errorf("%s\nand %s share a digest", a, b)
			}
		}
	}
}

func TestContentsAreRead(t *testing.T) {
	d := gemini.New(split.Options{})
	r := splitOf(t, `{"system_instruction":{"parts":[{"text":"be kind"}]},"contents":[{"parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},
		{"fileData":{"mimeType":"application/pdf","fileUri":"u"}},{"inline_data":{"mime_type":"audio/wav","data":"AAAAAAAA"}}]},
		{"role":"model","parts":[{"text":"hm","thought":true},{"text":"b"},{"functionCall":{"name":"ls","args":{"p":1}},"thoughtSignature":"s"},{"executableCode":{"code":"1"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"c"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}},{"text":"d"},{"text":"e"}]},
		{"role":"user","parts":[{"functionResponse":{"id":"i","name":"ls","response":{"output":"c","code":1}}}]}]}`)
	want := []session.Content{
		{Role: "system", Text: "be kind"},
		{Role: "user", Text: "a", Images: []session.Image{{Bytes: 3}}, Files: []session.File{
			{Kind: session.FileDocument, ID: "u", Format: "application/pdf"}, {Kind: session.FileAudio, Format: "audio/wav", Bytes: 6},
		}},
		{Role: "assistant", Text: "b", Reasoning: "hm", Calls: []session.Call{{ID: "functions.ls:0", Name: "ls", Arguments: `{"p":1}`}},
			Files: []session.File{{Kind: "executableCode", Format: "json", Bytes: len(`{"executableCode":{"code":"1"}}`)}}},
		{Role: "tool", Text: "c", Result: "functions.ls:0", Name: "ls", Images: []session.Image{{Bytes: 3}}},
		{Role: "user", Text: "d\ne"},
		{Role: "tool", Text: `{"output":"c","code":1}`, Result: "i", Name: "ls"},
	}
	for i := range r.Messages {
		got, err := d.Read(r.Messages[i].Raw)
		if err != nil || !reflect.DeepEqual(got, want[i]) {
			t.Errorf("message %d: got %+v (%v), want %+v", i, got, err, want[i])
		}
	}
	for _, raw := range []string{``, `{`, `{"text":"a"},`, `{"role":"system"}`, `"a"`} {
		if _, err := d.Read([]byte(raw)); err == nil {
			t.Errorf("%q was read", raw)
		}
	}
}

func TestRewrite(t *testing.T) {
	d := gemini.New(split.Options{})
	f := func(raw, want string) {
		t.Helper()
		got, err := d.Rewrite([]byte(raw), "cut")
		if err != nil || string(got) != want {
			t.Errorf("%s\ngot %s (%v)\nwant %s", raw, got, err, want)
		}
		if c, err := d.Read(got); err != nil || c.Text != "cut" || len(c.Images)+len(c.Files) > 0 {
			t.Errorf("%s reads as %+v, %v", got, c, err)
		}
	}
	f(`{"functionResponse":{"id":"A","name":"n","response":{"output":"x"}}}`, `{"functionResponse":{"id":"A","name":"n","response":{"output":"cut"}}}`)
	f(`{"functionResponse":{"name":"n","response":{"error":"x"},"parts":[{"inlineData":{}}]}}`, `{"functionResponse":{"name":"n","response":{"error":"cut"}}}`)
	f(`{"function_response":{"name":"n","response":{"a":1,"b":2}}}`, `{"function_response":{"name":"n","response":{"output":"cut"}}}`)
	f(`{"functionResponse":{"name":"n"}}`, `{"functionResponse":{"name":"n","response":{"output":"cut"}}}`)
	f(`{"parts":[{"functionResponse":{"name":"n","response":{"result":"x"}}}],"role":"user"}`, `{"parts":[{"functionResponse":{"name":"n","response":{"result":"cut"}}}],"role":"user"}`)
	f(`{"role":"user","parts":[{"text":"x"},{"inlineData":{}}]}`, `{"role":"user","parts":[{"text":"cut"}]}`)
	f(`{"text":"a"},{"text":"b"}`, `{"text":"cut"}`)
	f(`{"parts":[{"text":"x"},{"functionCall":{"name":"n"},"thoughtSignature":"s"}],"role":"model"}`,
		`{"parts":[{"text":"cut"},{"functionCall":{"name":"n"},"thoughtSignature":"s"}],"role":"model"}`)
	if _, err := d.Rewrite([]byte(`[{"text":"x"}]`), "cut"); err == nil {
		t.Error("a system instruction was rewritten")
	}
}

// TestCallsFollowNoAnswer: a call may not follow an answer that did not precede it, so a note stands between them where what was there is hidden.
func TestCallsFollowNoAnswer(t *testing.T) {
	d := gemini.New(split.Options{})
	r := splitOf(t, `{"contents":[{"parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]},{"role":"model","parts":[{"functionCall":{"name":"n"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"n"}}]},{"role":"model","parts":[{"functionCall":{"name":"m"}}]},{"role":"user","parts":[{"functionResponse":{"name":"m"}}]}]}`)
	raw := func(all ...int) (raws [][]byte) {
		for _, i := range all {
			raws = append(raws, r.Messages[i].Raw)
		}
		return raws
	}
	for _, c := range []struct {
		shown [][]byte
		notes int
	}{{raw(0, 1, 2, 3, 4, 5), 0}, {raw(0, 1, 4, 5), 1}, {raw(0, 4, 5), 0}, {raw(0, 1), 0}} {
		if got := string(slices.Concat(d.Join(r, c.shown)...)); strings.Count(got, "left out here") != c.notes || !json.Valid([]byte(got)) {
			t.Errorf("%d messages: %s", len(c.shown), got)
		}
	}
}

// TestLoneResultsKeepTheirBytes: a message with one result stays as the client wrote it, and joins the result of a hidden call before it.
func TestLoneResultsKeepTheirBytes(t *testing.T) {
	d := gemini.New(split.Options{})
	const lone = `{ "parts":[{"functionResponse":{"name":"n"}}],"role":"user"}`
	body := `{"contents":[{"parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"n"}}]},` + lone + `]}`
	r := splitOf(t, body)
	if got := dialecttest.InShort(r.Messages); got != "user actionfunctions.n:0 observationfunctions.n:0" || string(r.Messages[2].Raw) != lone {
		t.Fatalf("got %s", got)
	}
	hidden := d.Result(session.Call{Name: "recall"}, "found")
	joined := string(slices.Concat(d.Join(r, [][]byte{r.Messages[0].Raw, r.Messages[1].Raw, hidden, r.Messages[2].Raw})...))
	want := strings.Replace(body, lone, `{"role":"user","parts":[`+string(hidden)+`,{"functionResponse":{"name":"n"}}]}`, 1)
	if joined != want {
		t.Errorf("got %s, want %s", joined, want)
	}
}

// TestRepeatedResultsAreOne: a result that is sent twice is the same message as one that is sent once.
func TestRepeatedResultsAreOne(t *testing.T) {
	const result, other = `{"functionResponse":{"id":"A","name":"n","response":{"output":"x"}}}`, `{"functionResponse":{"id":"A","name":"n","response":{"output":"y"}}}`
	of := func(parts ...string) *dialect.Request {
		return splitOf(t, `{"contents":[{"role":"model","parts":[{"functionCall":{"id":"A","name":"n"}}]},{"role":"user","parts":[`+strings.Join(parts, ",")+`]}]}`)
	}
	once, twice := of(result), of(result, result, `{"text":"a"}`)
	if dialecttest.InShort(twice.Messages) != "actionA observationA user" || once.Messages[1].Digest != twice.Messages[1].Digest {
		t.Errorf("got %s", dialecttest.InShort(twice.Messages))
	}
	d := gemini.New(split.Options{})
	if got, err := d.Rewrite(twice.Messages[1].Raw, "cut"); err != nil || string(got) != strings.Replace(result, `"x"`, `"cut"`, 1) {
		t.Errorf("%s, %v", got, err)
	}
	if got := dialecttest.InShort(of(result, other).Messages); got != "actionA observationA observationA" {
		t.Errorf("got %s", got)
	}
}

func TestMerge(t *testing.T) {
	d := gemini.New(split.Options{})
	f := func(first, second, want string) {
		t.Helper()
		if got, err := d.Merge([]byte(first), []byte(second)); err != nil || string(got) != want {
			t.Errorf("got %s (%v), want %s", got, err, want)
		}
	}
	f(`{"parts":[{"text":"a"}],"role":"user"}`, string(d.Note("b")), `{"parts":[{"text":"a"},{"text":"b"}],"role":"user"}`)
	f(`{"text":"a"},{"text":"b"}`, string(d.Note("c")), `{"text":"a"},{"text":"b"},{"text":"c"}`)
	f(`{"functionResponse":{"name":"n"}}`, string(d.Note("c")), `{"functionResponse":{"name":"n"}},{"text":"c"}`)
	if _, err := d.Merge([]byte("{"), d.Note("b")); err == nil {
		t.Error("what is no content was merged")
	}
}

// drawContents returns a random conversation as agents send it.
func drawContents(t *rapid.T) []string {
	out := []string{`{"role":"user","parts":[{"text":"what the person wants to have done"}]}`}
	ids := rapid.Bool().Draw(t, "ids")
	for step := range rapid.IntRange(0, 8).Draw(t, "steps") {
		calls := rapid.IntRange(0, 3).Draw(t, "calls")
		said, results := []string{fmt.Sprintf(`{"text":"step %d of the run"}`, step)}, []string{}
		for c := range calls {
			id, signature := "", ""
			if ids {
				id = fmt.Sprintf(`"id":"t%d_%d",`, step, c)
			}
			if c == 0 {
				signature = `,"thoughtSignature":"c2ln"`
			}
			said = append(said, fmt.Sprintf(`{"functionCall":{%s"name":"ls","args":{"a":%d}}%s}`, id, c, signature))
			results = append(results, fmt.Sprintf(`{"functionResponse":{%s"name":"ls","response":{"output":"the result %d"}}}`, id, c))
		}
		for range rapid.IntRange(min(1, max(0, 1-calls)), 2).Draw(t, "texts") {
			results = append(results, `{"text":"and a reminder"}`)
		}
		out = append(out, `{"role":"model","parts":[`+strings.Join(said, ",")+`]}`, `{"role":"user","parts":[`+strings.Join(results, " , ")+`]}`)
	}
	return out
}

func bodyOf(contents []string) []byte {
	return []byte(`{"padding":"` + strings.Repeat("p", 33<<10) + `","systemInstruction":{"parts":[{"text":"s"}]},"contents":[` + strings.Join(contents, ",") + `]}`)
}

// TestJoinIsEquivalent: a body joined from its own messages is equivalent, and a composed body splits into the same messages.
func TestJoinIsEquivalent(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		dialecttest.JoinIsEquivalent(t, gemini.New(split.Options{}), bodyOf(drawContents(t)))
	})
}

// TestMemoryChangesNothing: dialects with and without a memory return the same, also where results without ids continue a remembered prefix.
func TestMemoryChangesNothing(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		d, contents := gemini.New(split.Options{Remember: 1 << 20}), drawContents(t)
		for n := 1; n <= len(contents); n += rapid.IntRange(1, 3).Draw(t, "more") {
			body := bodyOf(contents[:n])
			want := splitOf(t, string(body))
			mine := bytes.Clone(body)
			got, err := d.Split("", mine)
			if err != nil || !reflect.DeepEqual(got.Messages, want.Messages) || got.ListSpan != want.ListSpan {
				t.Fatalf("got %+v (%v)\nwant %+v", got, err, want)
			}
			for i := range mine { // as if the buffer were reused
				mine[i] = 'x'
			}
		}
	})
}

func TestTee(t *testing.T) {
	d := gemini.New(split.Options{})
	first := `{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"let me "}],"role":"model"}}],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":101},"responseId":"r"}`
	second := `{"candidates":[{"content":{"parts":[{"text":"look"},{"functionCall":{"id":"A","name":"ls","args":{"p":1}},"thoughtSignature":"s"}],"role":"model"},"finishReason":"STOP"}],
		"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":90,"candidatesTokenCount":12,"thoughtsTokenCount":8},"responseId":"r"}`
	second = strings.ReplaceAll(second, "\n\t\t", "")
	whole := strings.Replace(second, `{"text":"look"}`, `{"text":"hm","thought":true},{"text":"let me look"}`, 1)
	want := dialect.Answer{
		Text: "let me look", Wrote: 20, Finish: "STOP", ID: "r", Calls: []session.Call{{ID: "A", Name: "ls", Arguments: `{"p":1}`}},
		Usage: &session.Usage{Input: 100, Cached: 90, Output: 20},
	}
	for name, text := range map[string]string{
		"stream": "data: " + first + "\r\n\r\ndata: " + second + "\r\n\r\n",
		"whole":  whole,
		"assist": "data: {\"response\":" + first + "}\n\ndata: {\"response\":" + second + "}\n\n",
	} {
		tee := d.Tee(name != "whole")
		for i := range text {
			if tee.Ended() && i < len(text)-5 {
				t.Fatalf("%s: ended at %d of %d", name, i, len(text))
			}
			tee.Write([]byte{text[i]})
		}
		if got := tee.Answer(); !tee.Ended() || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

// TestListsAreReadPieceByPiece: a stream that is a list, without alt=sse, is the same answer as one of events. What has arrived of it counts, also
// if it is cut in the middle of a piece.
func TestListsAreReadPieceByPiece(t *testing.T) {
	d := gemini.New(split.Options{})
	first := `{"candidates":[{"content":{"parts":[{"text":"let } me "}]}}],"usageMetadata":{"promptTokenCount":100}}`
	second := `{"candidates":[{"content":{"parts":[{"text":"lo\"[ok"},{"functionCall":{"name":"ls"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":9}}`
	text := "[" + first + "\n,\r\n" + second + "\n]"
	for _, size := range []int{1, 7, len(text)} {
		tee := d.Tee(false)
		for piece := range slices.Chunk([]byte(text), size) {
			tee.Write(piece)
		}
		got := tee.Answer()
		if !tee.Ended() || got.Text != `let } me lo"[ok` || got.Finish != "STOP" || len(got.Calls) != 1 || *got.Usage != (session.Usage{Input: 100, Output: 9}) {
			t.Errorf("in pieces of %d: %+v", size, got)
		}
	}
	cut := d.Tee(false)
	cut.Write([]byte(text[:len(first)+20]))
	if got := cut.Answer(); cut.Ended() || cut.Failed() || got.Text != "let } me " || got.Usage == nil {
		t.Errorf("cut: %+v", got)
	}
	failed := d.Tee(false)
	failed.Write([]byte("[" + first + `,{"error":{"code":503,"status":"UNAVAILABLE"}}`))
	if got := failed.Answer(); !failed.Failed() || got.Status != 503 {
		t.Errorf("failed: %+v", got)
	}
	long := d.Tee(false)
	long.Write([]byte(`[{"text":"` + strings.Repeat("x", split.MaxAnswer) + `"},` + second + "]"))
	if got := long.Answer(); !long.Ended() || got.Text != `lo"[ok` {
		t.Errorf("behind a piece that is too long: %+v", got)
	}
}

// TestUsageBehindTheReasonIsRead: a stream has not ended before both its reason and its usage have come.
func TestUsageBehindTheReasonIsRead(t *testing.T) {
	tee := gemini.New(split.Options{}).Tee(true)
	tee.Write([]byte(`data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"trafficType":"ON_DEMAND"}}` + "\n\n"))
	if tee.Ended() {
		t.Error("it ended before its usage")
	}
	tee.Write([]byte(`data: {"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1}}` + "\n\n"))
	if got := tee.Answer(); !tee.Ended() || got.Finish != "MAX_TOKENS" || *got.Usage != (session.Usage{Input: 7, Output: 1}) {
		t.Errorf("got %+v", got)
	}
	failed := gemini.New(split.Options{}).Tee(true)
	failed.Write([]byte(`data: {"error":{"code":500,"message":"m","status":"INTERNAL"}}` + "\n\n"))
	if got := failed.Answer(); !failed.Failed() || got.Status != 500 {
		t.Errorf("an error event: %+v", got)
	}
}

func TestTeeOfErrorsAndBlocks(t *testing.T) {
	d := gemini.New(split.Options{})
	for text, check := range map[string]func(a dialect.Answer) bool{
		`{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}`: func(a dialect.Answer) bool {
			return a.Failed && a.Status == 429 && a.Code == "RESOURCE_EXHAUSTED"
		},
		`[{"error":{"code":400,"status":"INVALID_ARGUMENT"}}]`: func(a dialect.Answer) bool { return a.Failed && a.Status == 400 },
		`{"promptFeedback":{"blockReason":"SAFETY"}}`:          func(a dialect.Answer) bool { return a.Refusal == "SAFETY" && a.Finish == "SAFETY" },
		`{"candidates":[{"index":0,"content":{"parts":[{"text":"a"}]}},{"index":1,"content":{"parts":[{"text":"bc"}]},"finishReason":"STOP"}]}`: func(a dialect.Answer) bool {
			return a.Text == "a" && a.Wrote == 3 && a.Finish == ""
		},
	} {
		tee := d.Tee(false)
		tee.Write([]byte(text))
		if got := tee.Answer(); !check(got) {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

func TestFailure(t *testing.T) {
	d := gemini.New(split.Options{})
	got := string(d.Failure(dialect.Failure{Status: 401, Code: "unauthorized", Message: `a "key"`}))
	if want := `{"error":{"code":401,"message":"a \"key\"","status":"UNAUTHENTICATED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"unauthorized"}]}}`; got != want {
		t.Errorf("got %s", got)
	}
}
