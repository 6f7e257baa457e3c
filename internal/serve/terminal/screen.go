// Package terminal writes for people: it knows whether an output is a terminal, how wide that is, whether it has colours, and shows how far
// long work has come. Elsewhere, in a pipe, a file or a container's log, it adds nothing.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
)

// Screen is an output that may be a terminal. The zero value is none.
type Screen struct {
	out     io.Writer
	columns func() int // nil: it is no terminal
	escapes bool       // it understands escape sequences
	colours bool
}

// fallbackColumns is the width of a terminal that does not report one.
const fallbackColumns = 80

// Of returns the screen of an output. getenv reads the environment: there are no colours if NO_COLOR is set, and no escape sequences at all
// if TERM is dumb.
func Of(out io.Writer, getenv func(string) string) Screen {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Screen{out: out}
	}
	columns := func() int {
		if n, _, err := term.GetSize(int(file.Fd())); err == nil && n > 0 {
			return n
		}
		return fallbackColumns
	}
	return Emulated(out, columns, func(name string) string {
		if name == "TERM" && !platform.EnableEscapes(file) {
			return "dumb"
		}
		return getenv(name)
	})
}

// Emulated returns the screen of an output that is treated as a terminal with the given width, such as in tests.
func Emulated(out io.Writer, columns func() int, getenv func(string) string) Screen {
	s := Screen{out: out, columns: columns, escapes: getenv("TERM") != "dumb"}
	s.colours = s.escapes && getenv("NO_COLOR") == ""
	return s
}

// IsTerminal reports whether people read the output.
func (s Screen) IsTerminal() bool { return s.columns != nil }

// Columns returns the width of the terminal now, 0 if it is none.
func (s Screen) Columns() int {
	if s.columns == nil {
		return 0
	}
	return s.columns()
}

// Write writes to the output.
func (s Screen) Write(text []byte) (int, error) { return s.out.Write(text) }

// Through returns the screen with its output written to another writer, which passes it on.
func (s Screen) Through(out io.Writer) Screen {
	s.out = out
	return s
}

// EraseLine returns what removes the line that the cursor is in, empty if the screen cannot do that.
func (s Screen) EraseLine() string {
	if !s.escapes {
		return ""
	}
	return "\r\x1b[K"
}

// Colour is a way to emphasise text.
type Colour string

// The colours.
const (
	Plain  Colour = ""
	Bold   Colour = "1"
	Faint  Colour = "2"
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
)

// Paint returns a text in a colour, unchanged if the screen has none.
func (s Screen) Paint(c Colour, text string) string {
	if !s.colours || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
