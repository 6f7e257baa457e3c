package chat_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

const run = `{ "model":"m-1", "temperature":0, "messages" : [ {"role":"system","content":"Be brief."} ,
 {"role":"user","content":[{"type":"text","text":"hi"}]},
 {"role":"assistant","content":"","tool_calls":[{"id":"c\u0031","type":"function","function":{"name":"ls","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"cat","arguments":"{}"}}]},
 {"role":"tool","tool_call_id":"c1","content":"a"}, {"role":"tool","tool_call_id":"c2","content":"b"},
 {"role":"assistant","content":"done"}, {"role":"developer","content":"x"} ] , "stream":true, "max_tokens":100,
 "max_completion_tokens":200,"tools":[{"type":"function"}],"metadata":{"session_id":"s-1","user_id":"{\"session_id\":\"u-1\"}"} }`

func TestSplit(t *testing.T) {
	d := chat.New(chat.Options{Fields: []string{"session_id", "metadata.session_id", "metadata.user_id", "metadata.none.deep"}})
	r, err := d.Split("", []byte(run))
	if err != nil {
		t.Fatal(err)
	}
	if r.Model != "m-1" || !r.Stream || r.MaxOutput != 200 || string(r.Tools) != `[{"type":"function"}]` {
		t.Errorf("model %q, stream %v, max output %d, tools %s", r.Model, r.Stream, r.MaxOutput, r.Tools)
	}
	if want := map[string]string{"metadata.session_id": "s-1", "metadata.user_id": "u-1"}; !maps.Equal(r.Fields, want) {
		t.Errorf("fields %v", r.Fields)
	}
	var got []string
	for _, m := range r.Messages {
		got = append(got, m.Kind.String()+" "+strings.Join(m.Calls, "+")+" "+m.Result)
		if m.Raw[0] != '{' || m.Raw[len(m.Raw)-1] != '}' || !bytes.Contains([]byte(run), m.Raw) || m.Digest.IsZero() || m.Sealed {
			t.Errorf("message %s", m.Raw)
		}
	}
	want := []string{"system  ", "user  ", "action c1+c2 ", "observation  c1", "observation  c2", "agent  ", "system  "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if string(r.Body[:r.ListSpan.From])+"|"+string(r.Body[r.ListSpan.To:]) !=
		run[:strings.Index(run, "[")+1]+"|"+run[strings.Index(run, "] , \"stream\""):] {
		t.Errorf("inside is %+v", r.ListSpan)
	}
	joined := string(bytes.Join(chat.New(chat.Options{}).Join(r, [][]byte{[]byte("1"), []byte("2")}), nil))
	if !strings.Contains(joined, `"messages" : [1,2] , "stream":true`) {
		t.Errorf("joined: %s", joined)
	}
}

func TestSplitRefuses(t *testing.T) {
	d := chat.New(chat.Options{Fields: []string{"metadata.session_id"}})
	f := func(body, code, param string) {
		t.Helper()
		r, err := d.Split("", []byte(body))
		var e *dialect.Error
		if !errors.As(err, &e) || e.Code != code || e.Param != param || e.Message == "" || r != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	in := func(members string) string { return `{"messages":[{"role":"user"},{` + members + `}]}` }
	f(``, dialect.CodeInvalidJSON, "")
	f(`{"messages":[]}x`, dialect.CodeInvalidJSON, "")
	f("\xef\xbb\xbf{}", dialect.CodeInvalidJSON, "")
	f(`{"messages":[{"role":"user","content":"a"},]}`, dialect.CodeInvalidJSON, "")
	f("{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", dialect.CodeInvalidUTF8, "")
	f("{\"messages\":[{\"role\":\"user\",\"x\xed\xa0\x80\":1}]}", dialect.CodeInvalidUTF8, "")
	f(`{"x":`+strings.Repeat("[", rawjson.DefaultDepth)+strings.Repeat("]", rawjson.DefaultDepth)+`}`, dialect.CodeTooDeep, "")
	f(strings.Repeat(`{"messages":[`, 1<<16), dialect.CodeTooDeep, "")
	f(`{"messages":[],"messages":[]}`, dialect.CodeDuplicateKey, "messages")
	f(`{"messages":null,"messages":[{"role":"user"}]}`, dialect.CodeDuplicateKey, "messages")
	f(`{"model":"a","model":"a","messages":[]}`, dialect.CodeDuplicateKey, "model")
	f(`{"metadata":{},"metadata":{}}`, dialect.CodeDuplicateKey, "metadata")
	f(`{"mess\u0061ges":[]}`, dialect.CodeEscapedKey, "messages")
	f(`{"messages":[],"\u006d\u006f\u0064\u0065\u006c":1}`, dialect.CodeEscapedKey, "model")
	f(in(`"role":"user","role":"user"`), dialect.CodeDuplicateKey, "messages[1].role")
	f(in(`"role":"user","content":null,"content":"a"`), dialect.CodeDuplicateKey, "messages[1].content")
	f(in(`"role":"user","cont\u0065nt":"a"`), dialect.CodeEscapedKey, "messages[1].content")
	f(in(`"role":"assistant","tool_calls":[],"tool_calls":[]`), dialect.CodeDuplicateKey, "messages[1].tool_calls")
	f(in(`"role":"assistant","tool_calls":[{"id":"a","id":"b"}]`), dialect.CodeDuplicateKey, "messages[1].tool_calls.id")
	f(in(`"role":"assistant","tool_calls":[{"function":{"name":"a","\u006eame":"b"}}]`),
		dialect.CodeEscapedKey, "messages[1].tool_calls.function.name")
	f(in(`"role":"assistant","tool_calls":[{"function":{"arguments":"","arguments":""}}]`),
		dialect.CodeDuplicateKey, "messages[1].tool_calls.function.arguments")
	f(in(`"role":"assistant","function_call":{"name":"a","name":"b"}`), dialect.CodeDuplicateKey, "messages[1].function_call.name")

	// Invalid JSON is rejected even in a body that is unsupported.
	f(`{"messages":[{"role":"critic"}],"model":1,"model":2}`, dialect.CodeDuplicateKey, "model")
	f(`{"messages":[1],}`, dialect.CodeInvalidJSON, "")

	f(`[]`, dialect.CodeUnsupported, "messages")
	f(`"messages"`, dialect.CodeUnsupported, "messages")
	f(`{}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":[]}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":{}}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":null}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":["hi"]}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":[{"role":"user"},{}]}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":[{"role":null}]}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":[{"role":"critic"}]}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":[`+strings.Repeat(`{"role":"user"},`, 64<<10)+`{"role":"user"}]}`, dialect.CodeUnsupported, "messages")
	f(in(`"role":"assistant","tool_calls":[`+strings.Repeat(`{},`, 4<<10)+`{}]`), dialect.CodeUnsupported, "messages")
	f(in(`"role":"assistant","tool_calls":{}`), dialect.CodeUnsupported, "messages")
	f(in(`"role":"assistant","tool_calls":["a"]`), dialect.CodeUnsupported, "messages")
	f(in(`"role":"assistant","tool_calls":[{"function":"a"}]`), dialect.CodeUnsupported, "messages")
}

// The splitter accepts values that OpenAI's schema does not allow.
func TestSplitAccepts(t *testing.T) {
	d := chat.New(chat.Options{})
	for _, body := range []string{
		`{"messages":[{"role":"user"}],"x":1,"x":2,"\u0078":3}`,
		`{"messages":[{"role":"user","content":"a","extra":{"a":1,"a":2}}],"max_tokens":"many","stream":"yes","model":7}`,
		`{"messages":[{"role":"tool","content":5,"tool_call_id":null}],"max_tokens":1e3}`,
		`{"messages":[{"role":"assistant","tool_calls":null,"function_call":null}],"max_tokens":-5,"tools":null}`,
		`{"messages":[{"role":"us\u0065r","content":"\ud800"}],"max_tokens":99999999999999999999}`,
	} {
		r, err := d.Split("", []byte(body))
		if err != nil || len(r.Messages) != 1 || r.MaxOutput != 0 || r.Stream || r.Model != "" || r.Tools != nil || r.Fields != nil {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
}

func TestSplitOutput(t *testing.T) {
	d := chat.New(chat.Options{})
	f := func(members string, want int) {
		t.Helper()
		r, err := d.Split("", []byte(`{"messages":[{"role":"user"}],`+members+`}`))
		if err != nil || r.MaxOutput != want {
			t.Errorf("%s: %+v, %v", members, r, err)
		}
	}
	f(`"max_tokens":5`, 5)
	f(`"max_completion_tokens":6,"max_tokens":5`, 6)
	f(`"max_completion_tokens":null,"max_tokens":5`, 5)
	f(`"max_completion_tokens":1.5,"max_tokens":0`, 0)
}

// TestSplitAttached: a part that is neither text nor thinking is an attachment, so the message's token count is an estimate.
func TestSplitAttached(t *testing.T) {
	for part, want := range map[string]bool{
		`{"type":"text","text":"a"}`: false, `{"type":"refusal","refusal":"no"}`: false, `{"type":"thinking","thinking":"t"}`: false,
		`{"type":"redacted_thinking","data":"d"}`: false, `{"type":"image_url","image_url":"x"}`: true, `{"type":"hologram"}`: true,
	} {
		r, err := chat.New(chat.Options{}).Split("", []byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"see"},`+part+`]}]}`))
		if err != nil || r.Messages[0].Attached != want {
			t.Errorf("%s: %t, %v", part, r.Messages[0].Attached, err)
		}
	}
}

// TestSplitChoices: a request is charged for all answers that it asks for, up to OpenAI's maximum.
func TestSplitChoices(t *testing.T) {
	for members, want := range map[string]int{`"n":2`: 2, `"n":128`: 128, `"n":100000`: 128, `"n":"many"`: 0, `"x":1`: 0} {
		r, err := chat.New(chat.Options{}).Split("", []byte(`{"messages":[{"role":"user"}],`+members+`}`))
		if err != nil || r.Choices != want {
			t.Errorf("%s: %d, %v", members, r.Choices, err)
		}
	}
}

func TestSplitCalls(t *testing.T) {
	d := chat.New(chat.Options{})
	f := func(message string, kind session.Kind, calls, result string) {
		t.Helper()
		r, err := d.Split("", []byte(`{"messages":[`+message+`]}`))
		if err != nil {
			t.Errorf("%s: %v", message, err)
			return
		}
		m := r.Messages[0]
		if m.Kind != kind || strings.Join(m.Calls, "+") != calls || m.Result != result {
			t.Errorf("%s: %+v", message, m)
		}
	}
	f(`{"role":"assistant","tool_calls":[]}`, session.Agent, "", "")
	f(`{"role":"assistant","tool_calls":[{"type":"custom","id":"k","custom":{"name":"n","input":"i"}}]}`, session.Action, "k", "")
	f(`{"role":"assistant","tool_calls":[{},{"id":"b"}]}`, session.Action, "+b", "")
	f(`{"role":"assistant","function_call":{"name":"f","arguments":""}}`, session.Action, "f", "")
	f(`{"role":"assistant","content":"a","function_call":null,"tool_calls":null}`, session.Agent, "", "") // as SDKs write messages without calls
	f(`{"role":"function","name":"f","content":"r"}`, session.Observation, "", "f")
	f(`{"role":"tool","name":"f","content":"r"}`, session.Observation, "", "") // not the result of a function_call
	f(`{"role":"tool","name":"f","tool_call_id":"\ud83d\ude00"}`, session.Observation, "", "😀")
	f(`{"role":"user","name":"f","tool_call_id":"x","tool_calls":[{"id":"y"}]}`, session.User, "", "")
}

// TestManyCallsAreChecked checks that a message with too many calls is unsupported, but that duplicate keys in any of its
// calls are still rejected.
func TestManyCallsAreChecked(t *testing.T) {
	for last, want := range map[string]string{`{}`: dialect.CodeUnsupported, `{"id":"a","id":"b"}`: dialect.CodeDuplicateKey} {
		body := `{"messages":[{"role":"assistant","tool_calls":[` + strings.Repeat(`{},`, 5000) + last + `]}]}`
		var refused *dialect.Error
		if _, err := chat.New(chat.Options{}).Split("", []byte(body)); !errors.As(err, &refused) || refused.Code != want {
			t.Errorf("%s: %v, want %s", last, err, want)
		}
	}
}

func TestSplitSealed(t *testing.T) {
	d := chat.New(chat.Options{})
	f := func(members string, want bool) {
		t.Helper()
		r, err := d.Split("", []byte(`{"messages":[{"role":"assistant",`+members+`}]}`))
		if err != nil || r.Messages[0].Sealed != want {
			t.Errorf("%s: %v, %v", members, r, err)
		}
	}
	f(`"thinking_blocks":[{"type":"thinking","thinking":"t","signature":"s"}]`, true)
	f(`"thinking_blocks":[{"type":"redacted_thinking","data":"d"}]`, true)
	f(`"thinking_blocks":[{"type":"thinking","thinking":"t","signature":""}]`, false)
	f(`"thinking_blocks":[]`, false)
	f(`"reasoning_details":[{"type":"reasoning.summary","summary":"s"},{"type":"reasoning.encrypted","data":"d"}]`, true)
	f(`"reasoning_details":[{"type":"reasoning.text","text":"t","signature":"s"}]`, true)
	f(`"reasoning_details":[{"type":"reasoning.text","text":"t","signature":null}]`, false)
	f(`"reasoning_details":[{"type":"reasoning.encrypted","data":"d","format":"anthropic-claude-v1"}]`, true)
	f(`"reasoning_details":[{"type":"reasoning.encrypted","data":"d","format":"of a later day"}]`, true)
	f(`"reasoning_details":[{"type":"reasoning.encrypted","data":"d","format":"openai-responses-v1"}]`, false)
	f(`"reasoning_details":[{"type":"reasoning.encrypted","data":"d","format":"google-gemini-v1"}]`, false)
	f(`"content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"x"}]`, true)
	f(`"content":[{"type":"redacted_thinking","data":"d"}]`, true)
	f(`"content":[{"type":"text","text":"thinking"}]`, false)
	f(`"content":"[{\"type\":\"thinking\"}]"`, false)
	f(`"reasoning_content":"r","reasoning":"r"`, false)
	r, _ := d.Split("", []byte(`{"messages":[{"role":"user","content":[{"type":"thinking"}]}]}`))
	if r.Messages[0].Sealed {
		t.Error("only assistant messages carry sealed reasoning")
	}
}

func TestSplitFields(t *testing.T) {
	d := chat.New(chat.Options{Fields: []string{"session_id", "conversation.id", "metadata.user_id", "a.b.c", "model"}})
	f := func(members, path, want string) {
		t.Helper()
		r, err := d.Split("", []byte(`{"messages":[{"role":"user"}],`+members+`}`))
		if err != nil || r.Fields[path] != want || (want == "") != (len(r.Fields) == 0) {
			t.Errorf("%s: %v, %v", members, r, err)
		}
	}
	f(`"session_id":"s"`, "session_id", "s")
	f(`"session_id":5`, "session_id", "")
	f(`"session_id":""`, "session_id", "")
	f(`"conversation":{"id":"\u0063","x":1}`, "conversation.id", "c")
	f(`"conversation":"c"`, "conversation.id", "")
	f(`"a":{"b":{"c":"deep"}}`, "a.b.c", "deep")
	f(`"a":{"b":{"\u0063":"deep"}}`, "a.b.c", "deep")
	f(`"model":"gpt"`, "model", "gpt")
	f(`"metadata":{"user_id":"user_1_session_2"}`, "metadata.user_id", "")
	f(`"metadata":{"user_id":"{\"device_id\":\"d\",\"session_id\":\"s\"}"}`, "metadata.user_id", "s")
	f(`"metadata":{"user_id":"{\"session_id\":\"s\"} trailing"}`, "metadata.user_id", "")
	f(`"metadata":{"user_id":"{\"session_id\":1}"}`, "metadata.user_id", "")
	f(`"session_id":"`+strings.Repeat("x", 511)+`é"`, "session_id", strings.Repeat("x", 511))
}

// The result of Split must not change when the splitter reads the next body.
func TestSplitIsIndependent(t *testing.T) {
	d := chat.New(chat.Options{Fields: []string{"metadata.session_id"}})
	first, err := d.Split("", []byte(run))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.NewReplacer("c2", "zz", "s-1", "zzz", "m-1", "zzz", "1", "9").Replace(run)
	for range 3 {
		if _, err := d.Split("", []byte(other)); err != nil {
			t.Fatal(err)
		}
	}
	if first.Messages[2].Calls[1] != "c2" || first.Messages[4].Result != "c2" || first.Fields["metadata.session_id"] != "s-1" || first.Model != "m-1" {
		t.Errorf("changed: %+v", first)
	}
}
