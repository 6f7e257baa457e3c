package excerpt

import (
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestNoiseIsNotQuoted: lines that name something that the agent comes back to, but say nothing about it.
func TestNoiseIsNotQuoted(t *testing.T) {
	for line, noise := range map[string]bool{
		"580": true, "  580\t</side_bar2>": true, "580: </side_bar2>": true, "580→</side_bar2>": true, "580 471": true,
		"</side_bar2>": true, "<side_bar2>": false, "58000": false, "</side_bar2>);": true, "[tool_reference json]": true, "[tool_reference]": true,
		"## src/side_bar.go": true, "### The side_bar": true, "# side_bar": true,
		`<side_bar2 href="x">`: false, "580\treturn side_bar": false, "[file contract.pdf, file-abc123]": false, "[side_bar](docs/a.md)": false,
		"# the side_bar has to stay where it was": false, "#side_bar": false, "580 bytes in side_bar": false, "side_bar": false, "3f2a9bc": false,
	} {
		x := New()
		x.Add(Message{Kind: session.Observation, Content: session.Content{Text: line}})
		if len(x.terms) == 0 {
			t.Errorf("%q names nothing", line)
		}
		if got := x.Text(1000, count); strings.Contains(got, strings.TrimSpace(line)) == noise {
			t.Errorf("%q: %q", line, got)
		}
	}
}
