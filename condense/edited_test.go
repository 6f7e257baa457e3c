package condense

import (
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestAnEditedMessageDoesNotTakeTheRoom: what a client edits stays only if the request then still fits with what a person typed first.
func TestAnEditedMessageDoesNotTakeTheRoom(t *testing.T) {
	var messages []session.Message
	add := func(kind session.Kind, text string) {
		messages = append(messages, session.Message{Raw: []byte(text), Kind: kind, Digest: session.Hash{byte(len(messages))}})
	}
	add(session.User, "<system-reminder>x</system-reminder>")
	add(session.Agent, "ok")
	add(session.User, "<system-reminder>"+strings.Repeat("m", 300)+"</system-reminder>")
	add(session.Agent, "ok")
	add(session.User, strings.Repeat("typed ", 250))
	for range 12 {
		add(session.Agent, strings.Repeat("a ", 150))
		add(session.User, strings.Repeat("u ", 150))
	}
	v := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	in := Input{View: &v, Codec: plainCodec{}, Window: 10000, Reserved: 8000, Count: func(s string) int { return len(s) }, Measure: func(items []session.Item) (out []int) {
		for _, item := range items {
			out = append(out, len(item.Raw))
		}
		return out
	}}
	in.Total, in.Thread.Edited = total(in.Measure(v.Items)), 3
	d := AmortizedForgetting{Settings: Settings{KeepFirst: 1, MaxSize: 1000}}.Condense(in)
	if d.Job == nil {
		t.Fatal("nothing is due")
	}
	if c, _ := d.Job.Plan(); c.After.Tokens+in.Reserved > in.Window {
		t.Errorf("%d tokens and %d reserved, of %d", c.After.Tokens, in.Reserved, in.Window)
	}
}
