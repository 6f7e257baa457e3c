package assemble_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
)

// TestAddOddNames adds elements whose index and type are no plain values.
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
