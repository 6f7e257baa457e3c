package yamlfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// outline writes a value on one line, with what is wrong with it.
func outline(v *Value) string {
	switch v.Kind {
	case List:
		var all []string
		for _, item := range v.Items {
			all = append(all, outline(item))
		}
		return "[" + strings.Join(all, " ") + "]"
	case Table:
		var all []string
		for _, f := range v.Fields {
			all = append(all, fmt.Sprintf("%s@%d:%s", f.Name, f.Line, outline(f.Value)))
		}
		return "{" + strings.Join(all, " ") + "}"
	case Broken:
		return "!" + v.Problem[:strings.IndexAny(v.Problem, ":,")]
	}
	return v.Text
}

func TestParse(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		v, err := Parse([]byte(text))
		var got string
		if e, is := errors.AsType[Error](err); is {
			got = fmt.Sprintf("%d %s", e.Line, e.Message)
		} else {
			got = outline(v)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	f("", "{}")
	f("# nothing\n", "{}")
	f("a: 1\nb: [x, 1.5, true, null, 0x10]\n", "{a@1:1 b@2:[x 1.5 true  16]}")
	f(`{"a": {"b": "c"}}`, "{a@1:{b@1:c}}")
	f("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n", "{a@1:{b@1:1} c@2:{b@1:1} d@3:{e@3:2 b@1:1}}")
	f("a: &x {b: 1, c: 2}\nd: {<<: [*x], b: 3}\n", "{a@1:{b@1:1 c@1:2} d@2:{b@2:3 c@1:2}}")
	f("a: 1\na: 2\n", "{a@1:1 a@0:!is given twice}")
	f("a: *x\n", "{a@1:!uses an anchor that is not defined above it}")
	f("a: !tag b\n", "{a@1:!uses YAML that is not supported}")
	f("<<: 1\n", "{<<@0:!must name a section}")
	f("a: 1\n---\nb: 2\n", "0 contains several YAML documents: keep one")
	f("a: [\n", "1 "+Malformed)
	f(strings.Repeat("[", 501), "0 is nested too deeply: use flatter sections")
	f("a:"+strings.Repeat("\n", 600)+" b", "0 has hundreds of blank lines in a row: remove them")
	f(strings.Repeat("[", MaxDepth+1)+strings.Repeat("]", MaxDepth+1), strings.Repeat("[", MaxDepth+1)+strings.Repeat("]", MaxDepth+1))
	f(strings.Repeat("[", MaxDepth+2)+strings.Repeat("]", MaxDepth+2), strings.Repeat("[", MaxDepth+1)+"!is nested too deeply"+strings.Repeat("]", MaxDepth+1))
	values := fmt.Sprintf("0 contains more than %d values, aliases expanded: shorten it", MaxNodes)
	f("["+strings.Repeat("1,", MaxNodes)+"]", values)
	f("a: &a ["+strings.Repeat("x,", 300)+"]\nb: ["+strings.Repeat("*a,", 300)+"]\n", values)
}
