package chat_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
)

// TestReadersAreLinear reads hostile texts as bodies, messages and answers.
func TestReadersAreLinear(t *testing.T) {
	d := chat.New(chat.Options{})
	message := func(text string) []byte {
		return append(rawjson.AppendQuote([]byte(`{"role":"user","content":`), text), '}')
	}
	for name, read := range map[string]func(string){
		"body":    func(text string) { _, _ = d.Split("", []byte(`{"messages":[`+text)) },
		"content": func(text string) { _, _ = d.Split("", []byte(`{"model":"a","messages":[`+string(message(text))+`]}`)) },
		"message": func(text string) { _, _ = d.Read(message(text)) },
		"rewrite": func(text string) { _, _ = d.Rewrite(message(text), text) },
		"answer":  func(text string) { feed(d, false, text) },
		"events":  func(text string) { feed(d, true, text) },
		"pieces": func(text string) {
			feed(d, true, `data: {"choices":[{"delta":`+string(message(text))+"}]}\n\n"+text)
		},
	} {
		t.Run(name, func(t *testing.T) { lineartest.Check(t, read) })
	}
}

// feed writes an answer to a tee in small pieces.
func feed(d *chat.Dialect, streamed bool, text string) {
	tee := d.Tee(streamed)
	for len(text) > 0 {
		n := min(97, len(text))
		tee.Write([]byte(text[:n]))
		tee.Ended()
		text = text[n:]
	}
	tee.Answer()
}
