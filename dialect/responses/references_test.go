package responses_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// TestReferences: a dialect that knows items reads them in the place of references, and resolves messages that refer to them.
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
	if r.Messages[0].Refers || !r.Messages[1].Refers || r.Messages[2].Refers {
		t.Error("it is not the turn that refers to items")
	}
	d := plain.WithItems(items)
	for _, c := range []struct {
		raw, resolved, text string
		unknown             []string
	}{
		{turn, strings.Replace(turn, `{"type":"item_reference","id":"msg_1"}`, said, 1), "It is green.", []string{"rs_1"}},
		{`{"type":"item_reference","id":"msg_2"}`, "", "", []string{"msg_2"}},
		{said, "", "It is green.", nil},
		{`"instructions"`, "", "instructions", nil},
	} {
		content, err := d.Read([]byte(c.raw))
		if err != nil || content.Text != c.text {
			t.Errorf("%s is read as %q (%v)", c.raw, content.Text, err)
		}
		known := d.(*responses.Dialect)
		if got := string(known.Resolve([]byte(c.raw))); got != c.resolved {
			t.Errorf("%s is resolved to %q", c.raw, got)
		}
		if unknown := known.References([]byte(c.raw)); !slices.Equal(unknown, c.unknown) {
			t.Errorf("%s: unknown are %q", c.raw, unknown)
		}
	}
	if content, _ := plain.Read([]byte(turn)); content.Text != "" || len(plain.References([]byte(turn))) != 2 {
		t.Error("the original dialect knows the items, too")
	}
	if more := d.(*responses.Dialect).WithItems(map[string][]byte{"rs_1": []byte(`{"type":"reasoning","id":"rs_1","summary":[]}`)}); len(more.(*responses.Dialect).References([]byte(turn))) != 0 {
		t.Error("it forgot items")
	}
}
