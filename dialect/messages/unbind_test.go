package messages_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// TestUnbind checks that the option is added to the thinking object, wherever that is, and nothing else changes.
func TestUnbind(t *testing.T) {
	const (
		list     = `"messages":[{"role":"user","content":"hi"}]`
		thinking = `{"type":"enabled","budget_tokens":9}`
		asking   = `{"type":"enabled","budget_tokens":9,"block_binding":{"prefix_mismatch_behavior":"drop_block"}}`
		like     = `"tools":[{"name":"a","input_schema":{"thinking":` + thinking + `}}]`
	)
	for name, c := range map[string]struct{ body, want string }{
		"before": {`{"thinking":` + thinking + `,` + list + `}`, `{"thinking":` + asking + `,` + list + `}`},
		"behind": {`{` + list + `, "thinking" : ` + thinking + ` }`, `{` + list + `, "thinking" : ` + asking + ` }`},
		"another like it": {
			`{` + like + `,` + list + `,"thinking":` + thinking + `,"model":"m"}`, `{` + like + `,` + list + `,"thinking":` + asking + `,"model":"m"}`,
		},
		"said by the client": {
			`{"thinking":{"type":"enabled","block_binding":{"prefix_mismatch_behavior":"error"}},` + list + `}`,
			`{"thinking":{"type":"enabled","block_binding":{"prefix_mismatch_behavior":"error"}},` + list + `}`,
		},
		"none": {`{` + list + `}`, `{` + list + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := messages.New(split.Options{}), splitOf(t, c.body)
			got := string(slices.Concat(d.Join(d.Unbind(r), [][]byte{r.Messages[0].Raw})...))
			if got != c.want || !strings.Contains(got, list) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
