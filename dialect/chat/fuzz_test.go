package chat_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// FuzzSplit checks that an accepted body is valid JSON, and that its messages are in ListSpan and can be read.
func FuzzSplit(f *testing.F) {
	f.Add([]byte(run))
	f.Add([]byte(`{"messages":[{"role":"user","role":"user"}],"mod\u0065l":1}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","tool_calls":[{"custom":{"name":"a"}}],"function_call":{}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := chat.New(chat.Options{Fields: []string{"metadata.user_id", "session_id"}})
		sound := utf8.Valid(body) && jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		r, err := d.Split("", body)
		if err != nil {
			var e *dialect.Error
			if !errors.As(err, &e) {
				t.Fatalf("untyped: %v", err)
			}
			if unsound := e.Code == dialect.CodeInvalidJSON || e.Code == dialect.CodeInvalidUTF8; unsound && sound || e.Code == dialect.CodeUnsupported && !sound {
				t.Fatalf("sound is %v: %v", sound, err)
			}
			return
		}
		if !sound {
			t.Fatal("an unsound body is taken")
		}
		var raws [][]byte
		rest := body[r.ListSpan.From:r.ListSpan.To]
		for _, m := range r.Messages {
			raws = append(raws, m.Raw)
			at := bytes.Index(rest, m.Raw)
			if at < 0 {
				t.Fatalf("%s is not inside", m.Raw)
			}
			rest = rest[at+len(m.Raw):]
			c, err := d.Read(m.Raw)
			if err != nil || m.Result != c.Result || len(m.Calls) > len(c.Calls) {
				t.Fatalf("%+v reads as %+v, %v", m, c, err)
			}
		}
		again, err := d.Split("", bytes.Join(d.Join(r, raws), nil))
		if err != nil || len(again.Messages) != len(r.Messages) {
			t.Fatalf("joined: %v", err)
		}
	})
}

// FuzzDigest checks that a message keeps its digest if another encoder rewrites it.
func FuzzDigest(f *testing.F) {
	f.Add([]byte(`{"role":"user","content":[{"type":"text","text":"\u00e9\/"},{"type":"image_url","image_url":{"url":"u"}}]}`))
	f.Add([]byte(`{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"b\":1,\"a\":[]}"}}]}`))
	f.Add([]byte(`{"role":"assistant","content":"\ud800","tool_calls":[{"function":{"arguments":"\"\ud800\""}}]}`))
	f.Add([]byte(`{"role":"tool","tool_call_id":7,"content":[[{"a":1e400,"b":-0}]]}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		d := chat.New(chat.Options{})
		first, err := d.Split("", wrap(message))
		if err != nil || len(first.Messages) != 1 {
			return
		}
		again, err := d.Split("", wrap(message))
		if err != nil || again.Messages[0].Digest != first.Messages[0].Digest {
			t.Fatalf("the digest of %s is not stable", message)
		}
		written := jsontext.Value(bytes.Clone(first.Messages[0].Raw))
		// The encoder turns lone surrogates into U+FFFD, and white space counts in deeply nested content.
		if written.Format(jsontext.Multiline(true), jsontext.EscapeForJS(true), jsontext.EscapeForHTML(true)) != nil || deep(written) {
			return
		}
		other, err := d.Split("", wrap(written))
		if err != nil || other.Messages[0].Digest != first.Messages[0].Digest {
			t.Fatalf("%s\nbecame %s: %v", message, written, err)
		}
	})
}

func wrap(message []byte) []byte { return append(append([]byte(`{"messages":[`), message...), `]}`...) }

func deep(text []byte) bool {
	return bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > 50
}

// FuzzTee checks that an answer is read the same in pieces of any size.
func FuzzTee(f *testing.F) {
	f.Add([]byte(talk), uint16(3), true)
	f.Add([]byte("data: {\"choices\":[{\"delta\":\r\ndata: {\"content\":\"a\"}}]}\r\rdata:[DONE]"), uint16(1), true)
	f.Add([]byte(`{"choices":[{"message":{"content":"a","tool_calls":[{}]}}],"usage":{"prompt_tokens":1}} x`), uint16(7), false)
	f.Fuzz(func(t *testing.T, text []byte, size uint16, streamed bool) {
		whole, cut := tee(streamed, string(text)), tee(streamed)
		for from := 0; from < len(text); {
			to := min(from+1+(from*7+int(size))%(int(size)+1), len(text))
			piece := bytes.Clone(text[from:to])
			cut.Write(piece)
			clear(piece)
			if from%3 == 0 {
				cut.Answer()
			}
			from = to
		}
		if !reflect.DeepEqual(whole.Answer(), cut.Answer()) || whole.Ended() != cut.Ended() {
			t.Fatalf("whole: %v %+v\ncut:   %v %+v", whole.Ended(), whole.Answer(), cut.Ended(), cut.Answer())
		}
	})
}

// FuzzStripReasoning checks that a stripped message contains nothing sealed, and is otherwise equivalent.
func FuzzStripReasoning(f *testing.F) {
	f.Add([]byte(`{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"x"}]}`))
	f.Add([]byte(`{"role":"assistant","content":"x","reasoning_details":[{"data":"d"},{"data":"e","format":"google-gemini-v1"}]}`))
	f.Add([]byte(`{"role":"assistant","thinking_blocks":[{"type":"thinking","signature":"s"}],"tool_calls":[{"id":"a"}]}`))
	d := chat.New(chat.Options{})
	body := func(message []byte) []byte { return append(append([]byte(`{"messages":[`), message...), "]}"...) }
	f.Fuzz(func(t *testing.T, raw []byte) {
		before, err := d.Split("", body(raw))
		if err != nil || len(before.Messages) != 1 || before.Messages[0].Kind == session.System {
			return
		}
		stripped, err := d.StripReasoning(raw)
		if err != nil {
			t.Fatal(err)
		}
		after, err := d.Split("", body(stripped))
		if err != nil {
			t.Fatalf("%s: %v", stripped, err)
		}
		if after.Messages[0].Sealed {
			t.Errorf("%s is sealed still", stripped)
		}
		if after.Messages[0].Kind != before.Messages[0].Kind {
			t.Errorf("%s has become another kind", stripped)
		}
		again, err := d.StripReasoning(stripped)
		if err != nil || !bytes.Equal(again, stripped) {
			t.Errorf("%s strips to %s, %v", stripped, again, err)
		}
	})
}
