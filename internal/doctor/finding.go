// Package doctor checks what a proxy on this machine needs: its configuration, ports, store, upstreams and models, and where agents send their
// requests. It changes nothing, and shows no secret.
package doctor

import (
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is one line of the report.
type Finding struct {
	Level Level  `json:"level"`
	About string `json:"about"`         // in a word
	Says  string `json:"says"`          // what was found
	Fix   string `json:"fix,omitempty"` // what to do, unless the level is OK
}

// Widths of the columns.
const (
	levelWidth, aboutWidth = 4, 9
	indent                 = levelWidth + 2 + aboutWidth + 2
)

// Render lays a finding out for a screen.
func (f Finding) Render(s terminal.Screen) string {
	level, colour := string(f.Level), terminal.Green
	switch f.Level {
	case Warn:
		colour = terminal.Yellow
	case Fail:
		level, colour = "FAIL", terminal.Red
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s  %-*s  ", s.Paint(colour, fmt.Sprintf("%-*s", levelWidth, level)), aboutWidth, f.About)
	f.write(&text, s, f.Says, "")
	if f.Fix != "" {
		fmt.Fprint(&text, strings.Repeat(" ", indent))
		f.write(&text, s, "fix: "+f.Fix, "     ")
	}
	return text.String()
}

// write writes a text after what stands in its line, and the further lines below it. Elsewhere than on a terminal, it is one line.
func (f Finding) write(out *strings.Builder, s terminal.Screen, text, more string) {
	lines := []string{terminal.Clean(text)}
	if columns := s.Columns(); columns > 0 {
		lines = terminal.Wrap(lines[0], max(columns-indent-len(more)-1, 20))
	}
	out.WriteString(strings.Join(lines, "\n"+strings.Repeat(" ", indent)+more) + "\n")
}

// Failed reports whether one of the findings is a fault.
func Failed(all []Finding) bool {
	for _, f := range all {
		if f.Level == Fail {
			return true
		}
	}
	return false
}
