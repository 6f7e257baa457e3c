package gemini_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/dialecttest"
	"github.com/dewpoint-proxy/dewpoint/dialect/gemini"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// FuzzSplit: an accepted body is valid JSON, and its messages are in ListSpan, can be read, and are the same after they are joined.
func FuzzSplit(f *testing.F) {
	const contents = `"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"n"}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":"x"}}},{"text":"b"}]}]`
	f.Add("/models/m:generateContent", []byte(`{`+contents+`,"systemInstruction":{"parts":[{"text":"s"}]}}`))
	f.Add("/v1internal:generateContent", []byte(`{"request":{`+contents+`},"model":"m"}`))
	f.Add("/models/m:countTokens", []byte(`{"generateContentRequest":{`+contents+`},"p\u0061rts":[]}`))
	f.Fuzz(func(t *testing.T, target string, body []byte) {
		d := gemini.New(split.Options{Fields: []string{"session_id"}})
		sound := utf8.Valid(body) && jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		r, err := d.Split(target, body)
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
			c, err := d.Read(m.Raw)
			if err != nil || (m.Kind == session.Observation) != (c.Result != "") || len(m.Calls) != len(c.Calls) {
				t.Fatalf("%+v reads as %+v, %v", m, c, err)
			}
			if m.Kind == session.System {
				continue
			}
			at := bytes.Index(rest, m.Raw)
			if at < 0 {
				t.Fatalf("%s is not inside", m.Raw)
			}
			rest = rest[at+len(m.Raw):]
		}
		again, err := d.Split(target, bytes.Join(d.Join(r, raws), nil))
		if err != nil || len(again.Messages) != len(r.Messages) || dialecttest.InShort(again.Messages) != dialecttest.InShort(r.Messages) {
			t.Fatalf("joined: %v", err)
		}
	})
}

// FuzzTee: an answer is read the same in pieces of any size.
func FuzzTee(f *testing.F) {
	const answer = `{"candidates":[{"content":{"parts":[{"text":"a"},{"functionCall":{"name":"n"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`
	f.Add([]byte("data: "+answer+"\r\n\r\n"), uint16(3), true)
	f.Add([]byte(answer), uint16(7), false)
	f.Add([]byte("["+answer+"\n,"+answer+"]"), uint16(5), false)
	f.Fuzz(func(t *testing.T, text []byte, size uint16, streamed bool) {
		d := gemini.New(split.Options{})
		whole, cut := d.Tee(streamed), d.Tee(streamed)
		whole.Write(text)
		for from := 0; from < len(text); {
			to := min(from+1+(from*7+int(size))%(int(size)+1), len(text))
			piece := bytes.Clone(text[from:to])
			cut.Write(piece)
			clear(piece)
			from = to
		}
		if !reflect.DeepEqual(whole.Answer(), cut.Answer()) || whole.Ended() != cut.Ended() {
			t.Fatalf("whole: %v %+v\ncut:   %v %+v", whole.Ended(), whole.Answer(), cut.Ended(), cut.Answer())
		}
	})
}
