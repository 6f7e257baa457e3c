package messages_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// TestMark checks that a record is marked as the client marks its blocks, up to the API's limit.
func TestMark(t *testing.T) {
	const (
		brief = `"cache_control":{"type":"ephemeral"}`
		hour  = `"cache_control":{"type":"ephemeral","ttl":"1h"}`
	)
	block := func(mark string) string { return `{"type":"text","text":"a",` + mark + `}` }
	for name, c := range map[string]struct{ outside, first, last, want string }{
		"no mark":               {`"system":"s"`, `"hi"`, `"go"`, ""},
		"null is no mark":       {`"system":[{"type":"text","text":"s","cache_control":null}]`, `"hi"`, `"go"`, ""},
		"as the next":           {`"system":[` + block(hour) + `]`, `[` + block(hour) + `]`, `[` + block(brief) + `]`, brief},
		"as the next, an hour":  {`"system":[` + block(hour) + `]`, `"hi"`, `[` + block(hour) + `]`, hour},
		"as the shortest":       {`"system":[` + block(brief) + `],"tools":[{"name":"t",` + hour + `}]`, `"hi"`, `"go"`, brief},
		"as a later, shorter":   {`"tools":[{"name":"t",` + hour + `}],"system":[` + block(brief) + `]`, `"hi"`, `"go"`, brief},
		"as the only one":       {`"system":[` + block(hour) + `]`, `"hi"`, `"go"`, hour},
		"the request's own":     {`"system":"s",` + brief, `"hi"`, `"go"`, brief},
		"four are enough":       {`"system":[` + block(brief) + `,` + block(brief) + `]`, `[` + block(brief) + `]`, `[` + block(brief) + `]`, ""},
		"a tool's schema":       {`"tools":[{"name":"t","input_schema":{"properties":{` + brief + `}}}]`, `"hi"`, `"go"`, ""},
		"only a word in a text": {`"system":"cache_control"`, `"hi"`, `"go"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := messages.New(split.Options{})
			body := `{"model":"m","max_tokens":9,` + c.outside + `,"messages":[{"role":"user","content":` + c.first +
				`},{"role":"assistant","content":"yes"},{"role":"user","content":` + c.last + `}]}`
			r, err := d.Split("", []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			list, at := make([][]byte, 0, len(r.Messages)), 0
			for _, m := range r.Messages {
				if list = append(list, m.Raw); strings.Contains(string(m.Raw), "assistant") {
					at = len(list) - 1
				}
			}
			list[at] = d.Note(`a "record"`)
			before := slices.Clone(list)
			want := string(list[at])
			if c.want != "" {
				want = `{"role":"user","content":[{"type":"text","text":"a \"record\"",` + c.want + `}]}`
			}
			if got := string(d.Mark(r, list, at)); got != want {
				t.Errorf("marked\n%s\nwant\n%s", got, want)
			}
			if !slices.EqualFunc(list, before, func(a, b []byte) bool { return string(a) == string(b) }) {
				t.Error("the messages changed")
			}
		})
	}
}

// TestMarksBehindResults: a mark counts where several blocks stand behind the results of a user message, too. A fifth mark would be refused.
func TestMarksBehindResults(t *testing.T) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	d := messages.New(split.Options{})
	for system, want := range map[string]bool{`"s"`: true, `[{"type":"text","text":"a",` + mark + `},{"type":"text","text":"b",` + mark + `},{"type":"text","text":"c",` + mark + `}]`: false} {
		r := splitOf(t, `{"system":`+system+`,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"A","name":"ls","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"A","content":"x"},{"type":"text","text":"go"},{"type":"text","text":"on",`+mark+`}]}]}`)
		list := [][]byte{d.Note(`a "record"`)}
		for _, m := range r.Messages {
			if strings.Contains(string(m.Raw), "tool_use") {
				list = append(list, m.Raw)
			}
		}
		list = append(list, r.Messages[len(r.Messages)-1].Raw)
		if got := strings.Contains(string(d.Mark(r, list, 0)), mark); got != want {
			t.Errorf("system %s: marked: %v, want %v", system, got, want)
		}
	}
}

// TestMarkOfMergedRecord checks that the mark is added to the record even if the client's next message follows it in the same message.
func TestMarkOfMergedRecord(t *testing.T) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	d := messages.New(split.Options{})
	next := `{"role":"user","content":[{"type":"text","text":"go"},{"type":"text","text":"on",` + mark + `}]}`
	r := splitOf(t, `{"messages":[`+next+`]}`)
	merged, err := d.Merge(d.Note(`a "record"`), []byte(next))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"role":"user","content":[{"type":"text","text":"a \"record\"",` + mark + `},{"type":"text","text":"go"},{"type":"text","text":"on",` + mark + `}]}`
	if got := string(d.Mark(r, [][]byte{merged}, 0)); got != want {
		t.Errorf("marked\n%s\nwant\n%s", got, want)
	}
}
