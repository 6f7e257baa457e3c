package assemble_test

import (
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
)

// TestAddOddNames adds elements whose index or type is an object or a list.
func TestAddOddNames(t *testing.T) {
	for raw, want := range map[string]string{
		`{"tool_calls":[{"index":{},"a":"x"}]}`: `{"tool_calls":[{"a":"x","index":{}},{"a":"x","index":{}}]}`,
		`{"tool_calls":[{"index":[],"a":"x"}]}`: `{"tool_calls":[{"a":"x","index":[]},{"a":"x","index":[]}]}`,
		`{"tool_calls":[{"type":{},"a":"x"}]}`:  `{"tool_calls":[{"a":"x","type":{}},{"a":"x","type":{}}]}`,
		`{"tool_calls":[{"index":0,"a":"x"}]}`:  `{"tool_calls":[{"a":"xx","index":0}]}`,
	} {
		to := assemble.Piece{}
		assemble.Add(to, assemble.Decode([]byte(raw)))
		assemble.Add(to, assemble.Decode([]byte(raw)))
		if got := string(assemble.Encode(to)); got != want {
			t.Errorf("%s twice gives %s", raw, got)
		}
	}
}

// TestTextsGrow checks that texts are assembled from many pieces, and can be extended after they are read.
func TestTextsGrow(t *testing.T) {
	to := assemble.Decode([]byte(`{"a":"1","list":[{"index":0,"b":"1"}]}`))
	for range 3 {
		for range 2 {
			assemble.Add(to, assemble.Decode([]byte(`{"a":"2","list":[{"index":0,"b":"2"}]}`)))
		}
		if text, is := assemble.Text(to["a"]); !is || !strings.HasPrefix("1222222", text) {
			t.Fatalf("%T", to["a"])
		}
	}
	if got := string(assemble.Encode(to)); got != `{"a":"1222222","list":[{"b":"1222222","index":0}]}` {
		t.Error(got)
	}
}

// BenchmarkAdd appends pieces of four bytes to a text. The cost of each should not depend on the length of the text.
func BenchmarkAdd(b *testing.B) {
	to, more := assemble.Piece{}, assemble.Piece{"content": "four"}
	for b.Loop() {
		assemble.Add(to, more)
	}
}
