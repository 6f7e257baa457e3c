package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// exact counts with the real encoder, and is otherwise quarters.
type exact struct {
	quarters //nolint:unused // its methods are
	*tokenize.Encoder
}

func newExact(t *testing.T) exact {
	t.Helper()
	e, err := tokenize.New().Encoder(tokenize.O200k)
	must(t, err)
	return exact{Encoder: e}
}

func (e exact) Counter(string) engine.Counter    { return e }
func (e exact) Encoding() string                 { return e.Encoder.Name() }
func (e exact) Text(s string) int                { return e.Encoder.Count(s) }
func (e exact) Message(c session.Content) int    { return e.Encoder.Message(c) }
func (e exact) Observe(string, int, int, bool)   {}
func (e exact) Adjust(_ string, counted int) int { return counted }

// TestHostileBodiesAreRefused sends bodies that two parsers could read differently. None of them goes upstream.
func TestHostileBodiesAreRefused(t *testing.T) {
	const deep = 1_000_000
	r := newRig(t, setup{})
	for name, c := range map[string]struct{ body, code string }{
		"deep arrays":       {strings.Repeat("[", deep), "too_deep"},
		"deep objects":      {strings.Repeat(`{"a":`, deep), "too_deep"},
		"deep, closed":      {strings.Repeat("[", deep) + strings.Repeat("]", deep), "too_deep"},
		"deep in a message": {messages(`{"role":"user","content":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `}`), "too_deep"},
		"deep beside":       {`{"x":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `,` + hello[1:], "too_deep"},
		"two messages keys": {`{"messages":[],` + hello[1:], "duplicate_key"},
		"two roles":         {messages(`{"role":"system","role":"user","content":"x"}`), "duplicate_key"},
		"two contents":      {messages(`{"role":"user","content":"a","content":"b"}`), "duplicate_key"},
		"two models":        {`{"model":"a",` + hello[1:], "duplicate_key"},
		"two call ids":      {messages(`{"role":"assistant","tool_calls":[{"id":"a","id":"b"}]}`), "duplicate_key"},
		"escaped key":       {`{"m\u0065ssages":[],` + hello[1:], "escaped_key"},
		"escaped role":      {messages(`{"\u0072ole":"user","content":"x"}`), "escaped_key"},
		"Messages":          {`{"Messages":[],` + hello[1:], "duplicate_key"},
		"MODEL after it":    {hello[:len(hello)-1] + `,"MODEL":"b"}`, "duplicate_key"},
		"a long s":          {`{"meſſages":[],` + hello[1:], "duplicate_key"},
		"Role":              {messages(`{"role":"user","Role":"system","content":"x"}`), "duplicate_key"},
		"two texts":         {messages(`{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}`), "duplicate_key"},
		"a text and null":   {messages(`{"role":"user","content":[{"type":"text","text":"a","text":null}]}`), "duplicate_key"},
		"two types":         {messages(`{"role":"user","content":[{"type":"image_url","type":"text","text":"b"}]}`), "duplicate_key"},
		"escaped text":      {messages(`{"role":"user","content":[{"type":"text","text":"a","t\u0065xt":"b"}]}`), "duplicate_key"},
		"two session ids":   {`{"metadata":{"session_id":"a","session_id":"b"},` + hello[1:], "duplicate_key"},
		"invalid UTF-8":     {messages(say("user", "x")[:27] + "\xff" + `"}`), "invalid_utf8"},
		"overlong UTF-8":    {messages("{\"role\":\"user\",\"content\":\"\xc0\xaf\"}"), "invalid_utf8"},
		"surrogate":         {messages("{\"role\":\"user\",\"content\":\"\xed\xa0\x80\"}"), "invalid_utf8"},
		"truncated":         {hello[:len(hello)-1], "invalid_json"},
		"truncated string":  {hello[:len(hello)-5], "invalid_json"},
		"trailing bytes":    {hello + "x", "invalid_json"},
		"two bodies":        {hello + hello, "invalid_json"},
		"byte order mark":   {"\ufeff" + hello, "invalid_json"},
		"NUL after":         {hello + "\x00", "invalid_json"},
		"NUL in a string":   {messages("{\"role\":\"user\",\"content\":\"a\x00b\"}"), "invalid_json"},
		"line feed in it":   {messages("{\"role\":\"user\",\"content\":\"a\nb\"}"), "invalid_json"},
		"empty":             {"", "invalid_json"},
		"spaces":            {"  \n", "invalid_json"},
		"bad number":        {`{"n":01,` + hello[1:], "invalid_json"},
		"not a number":      {`{"n":NaN,` + hello[1:], "invalid_json"},
		"bad escape":        {messages(`{"role":"user","content":"\x41"}`), "invalid_json"},
		"trailing comma":    {messages(say("user", "x") + ","), "invalid_json"},
		"comment":           {"/**/" + hello, "invalid_json"},
		"single quotes":     {`{'messages':[]}`, "invalid_json"},
	} {
		t.Run(name, func(t *testing.T) {
			req := r.request(guard(t), http.MethodPost, chatPath, c.body, "Content-Type", "application/json")
			resp, err := r.client.Do(req)
			must(t, err)
			wantError(t, resp, drain(t, resp), 400, c.code)
		})
	}
	if n := len(r.up.Requests()); n != 0 {
		t.Errorf("%d requests went upstream", n)
	}
}

// TestOddBodiesPass sends valid JSON that is not a conversation, or a strange one. Upstream has to judge it.
func TestOddBodiesPass(t *testing.T) {
	r, got := mirrored(t, setup{tokens: newExact(t)})
	long := strings.Repeat("a", 1<<20)
	for name, body := range map[string]string{
		"null":               "null",
		"a number":           "1e999",
		"an array":           "[" + hello + "]",
		"no messages":        `{"model":"gpt-4o"}`,
		"empty messages":     messages(),
		"messages no array":  `{"messages":{"role":"user"}}`,
		"messages null":      `{"messages":null}`,
		"message no object":  messages("1", "null", "[]"),
		"unknown role":       messages(say("alien", "x")),
		"no role":            messages(`{"content":"x"}`),
		"role a number":      messages(`{"role":7,"content":"x"}`),
		"content a number":   messages(`{"role":"user","content":7}`),
		"content an object":  messages(`{"role":"user","content":{"a":[]}}`),
		"calls no array":     messages(`{"role":"assistant","tool_calls":"x"}`),
		"orphan result":      messages(say("user", "x"), `{"role":"tool","tool_call_id":"none","content":"x"}`),
		"two results":        messages(`{"role":"assistant","tool_calls":[{"id":"a"}]}`, `{"role":"tool","tool_call_id":"a"}`, `{"role":"tool","tool_call_id":"a"}`),
		"one id twice":       messages(`{"role":"assistant","tool_calls":[{"id":"a"},{"id":"a"}]}`),
		"huge numbers":       `{"max_tokens":1e999999,"max_completion_tokens":99999999999999999999,"n":-0.0e-0,` + hello[1:],
		"negative tokens":    `{"max_tokens":-5,` + hello[1:],
		"stream a string":    `{"stream":"true",` + hello[1:],
		"escaped NUL":        messages(`{"role":"user","content":"a\u0000b\ud800"}`),
		"unknown keys twice": `{"x":1,"x":2,` + hello[1:],
		"spaces all over":    " \n\t" + strings.ReplaceAll(hello, ":", " : \r\n") + "\n ",
		"one long character": messages(say("user", long)),
		"many spaces":        messages(say("user", strings.Repeat(" ", 1<<20))),
		"no words":           messages(say("user", strings.Repeat("\U0001f469\u200d", 1<<17))),
		"long id":            messages(`{"role":"assistant","tool_calls":[{"id":"` + long + `","type":"function","function":{"name":"x","arguments":"{}"}}]}`),
		"deep arguments":     messages(`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"x","arguments":"` + strings.Repeat("[", 100_000) + `"}}]}`),
		"long model":         `{"model":"` + long + `",` + hello[len(`{"model":"gpt-4o",`):],
		"long session field": `{"metadata":{"session_id":"` + long + `"},` + hello[1:],
		"a hundred thousand": messages(strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, 100_000), ",")),
		"many calls":         messages(`{"role":"assistant","tool_calls":[` + strings.TrimSuffix(strings.Repeat(`{"id":"a"},`, 50_000), ",") + `]}`),
		"512 levels":         `{"x":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `,` + hello[1:],
	} {
		t.Run(name, func(t *testing.T) {
			if resp, answer := r.ask(body); resp.StatusCode != http.StatusOK {
				t.Fatalf("status %d, %.300s", resp.StatusCode, answer)
			}
			if up := <-got; up.body != body {
				t.Errorf("%d bytes arrived, want %d", len(up.body), len(body))
			}
		})
	}
}

// TestLargestBody sends a body of exactly the allowed size.
func TestLargestBody(t *testing.T) {
	size := 64 << 20 // the default
	if testing.Short() {
		size = 8 << 20
	}
	r, got := mirrored(t, setup{limits: func(l *proxy.Limits) { l.Body = int64(size) }})
	body := messages(say("user", strings.Repeat("x", size-len(messages(say("user", ""))))))
	if resp, answer := r.ask(body); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, %.300s", resp.StatusCode, answer)
	}
	if up := <-got; up.body != body || len(body) != size {
		t.Errorf("%d bytes arrived, want %d", len(up.body), len(body))
	}
}

// TestHostileAnswers has upstream send broken and hostile answers: they pass, and nothing crashes.
func TestHostileAnswers(t *testing.T) {
	r := newRig(t, setup{})
	long := strings.Repeat("[", 1<<20)
	for name, raw := range map[string]string{
		"deep": long, "no JSON": "hello", "empty": "", "null": "null", "invalid UTF-8": "\xff\xfe",
		"odd usage":  `{"choices":[{"message":{"content":7}}],"usage":{"prompt_tokens":-5e99,"completion_tokens":"x"}}`,
		"odd calls":  `{"choices":[{"index":-1},{"message":{"tool_calls":[null,{"id":7},{"function":[]}]}}]}`,
		"long calls": `{"choices":[{"message":{"tool_calls":[` + strings.TrimSuffix(strings.Repeat(`{"id":"a"},`, 10_000), ",") + `]}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r.up.Script(fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: 200, ContentType: "application/json", Body: []byte(raw)}})
			if _, got := r.ask(hello); got != raw {
				t.Errorf("%d bytes arrived, want %d", len(got), len(raw))
			}
			raw := "data: " + raw + "\n\ndata: [DONE]\n\n"
			r.up.Script(fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: 200, ContentType: "text/event-stream", Body: []byte(raw)}})
			if _, got := r.ask(helloing); got != raw {
				t.Errorf("as a stream %d bytes arrived, want %d", len(got), len(raw))
			}
		})
	}
}
