package condense_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestMaskingGoesByText checks that whether a result is masked does not depend on the client's spacing and cache marks.
func TestMaskingGoesByText(t *testing.T) {
	d := messages.New(split.Options{})
	image := `[{"type":"image","source":{"type":"file","file_id":"f"}}]`
	for content, want := range map[string]bool{`"ok"`: false, `"<MASKED>"`: false, `"it is there"`: true, image: true} {
		for _, form := range []string{
			`{"type":"tool_result","tool_use_id":"A","content":%s}`,
			`{ "type": "tool_result",   "tool_use_id": "A",   "content": %s   }`,
			`{"type":"tool_result","tool_use_id":"A","content":%s,"cache_control":{"type":"ephemeral"}}`,
			`{"type":"tool_result","tool_use_id":"A","content":[{"type":"text", "text": %s, "cache_control": {"type": "ephemeral"}}]}`,
		} {
			if content == image && strings.Contains(form, `"text": %s`) {
				continue
			}
			r, err := d.Split("", []byte(`{"messages":[{"role":"user","content":"go"},
				{"role":"assistant","content":[{"type":"tool_use","id":"A","name":"n","input":{}}]},
				{"role":"user","content":[`+fmt.Sprintf(form, content)+`]},{"role":"assistant","content":"done"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			v := session.Project(session.NewHistory(session.Hash{}, r.Messages), nil)
			in := condense.Input{View: &v, Codec: d}
			if got := (condense.ObservationMasking{AttentionWindow: 1}).Condense(in).View != nil; got != want {
				t.Errorf("%s in %s: masked %v, want %v", content, form, got, want)
			}
		}
	}
}
