package condense

import (
	"slices"
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

// TestShareOfAnEditedMessage: what comes up to a message that the client edits stays if it takes at most a quarter of the target's tokens and
// half of its events.
func TestShareOfAnEditedMessage(t *testing.T) {
	var messages []session.Message
	for i := range 13 {
		kind := []session.Kind{session.User, session.Agent}[i%2]
		messages = append(messages, session.Message{Raw: []byte("x"), Kind: kind, Digest: session.Hash{byte(i)}})
	}
	v := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	in := Input{View: &v, Codec: plainCodec{}, Thread: Thread{Edited: 3}}
	for _, test := range []struct {
		edited int // tokens of the message, which is the third, after two of ten tokens each
		target session.Size
		stays  bool
	}{
		{80, session.Size{Events: 100, Tokens: 400}, true},
		{81, session.Size{Events: 100, Tokens: 400}, false},
		{10, session.Size{Events: 6, Tokens: 400}, true},
		{10, session.Size{Events: 5, Tokens: 400}, false},
	} {
		tokens := slices.Repeat([]int{10}, len(messages))
		tokens[2] = test.edited
		p := newPicker(&in, tokens)
		p.edited(test.target)
		if want := slices.Repeat([]bool{test.stays}, 3); !slices.Equal(p.keep[:3], want) || slices.Contains(p.keep[3:], true) {
			t.Errorf("%+v: keeps %v", test, p.keep)
		}
	}
}
