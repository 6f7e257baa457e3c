package responses_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestReferences: a dialect that knows items reads them in place of references, and resolves messages that refer to them.
func TestReferences(t *testing.T) {
	const (
		said   = `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"It is green."}]}`
		call   = `{"type":"function_call","call_id":"A","name":"ls","arguments":"{}"}`
		turn   = `{"type":"item_reference","id":"rs_1"},{"type":"item_reference","id":"msg_1"},` + call
		before = `{"input":[{"role":"user","content":"a"},` + turn + `,{"type":"function_call_output","call_id":"A","output":"b"}]}`
	)
	plain := responses.New(split.Options{})
	items := plain.Items([]byte(said + `,` + call + `,{"type":"item_reference","id":"msg_0"}`))
	if len(items) != 1 || string(items["msg_1"]) != said {
		t.Fatalf("the items are %q", items)
	}
	r := splitOf(t, before)
	if m := r.Messages[1]; len(r.Messages[0].Refers) > 0 || !slices.Equal(m.Refers, []string{"rs_1", "msg_1"}) || len(r.Messages[2].Refers) > 0 {
		t.Errorf("the turn refers to %q", m.Refers)
	}
	r = splitOf(t, `{"input":[`+strings.Repeat(`{"role":"user","content":"a"},{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"A","output":"b"},{"type":"item_reference","id":7},`, 2)+said+`]}`)
	if r.Messages[1].Kind != session.Action || r.Messages[3].Kind != session.Agent || r.Messages[3].Refers != nil {
		t.Errorf("the turns are %+v", r.Messages)
	}
	d := plain.WithItems(items)
	for _, c := range []struct{ raw, resolved, text string }{
		{turn, strings.Replace(turn, `{"type":"item_reference","id":"msg_1"}`, said, 1), "It is green."},
		{`{"type":"item_reference","id":"msg_2"}`, "", ""},
		{said, "", "It is green."},
		{`"instructions"`, "", "instructions"},
	} {
		content, err := d.Read([]byte(c.raw))
		if err != nil || content.Text != c.text {
			t.Errorf("%s is read as %q (%v)", c.raw, content.Text, err)
		}
		if got := string(d.(*responses.Dialect).Resolve([]byte(c.raw))); got != c.resolved {
			t.Errorf("%s is resolved to %q", c.raw, got)
		}
	}
	if content, _ := plain.Read([]byte(turn)); content.Text != "" {
		t.Error("the original dialect knows the items, too")
	}
}
