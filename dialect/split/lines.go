package split

import "bytes"

// Lines goes over a stream of server-sent events to rewrite it: each line of data comes to Take, with the lines that name its event before
// it, verbatim; Take reports whether it lets anything of it pass. All else comes to Pass. A line is taken once it has ended.
type Lines struct {
	Take func(data, lines []byte) bool
	Pass func(line []byte)

	line    []byte
	named   []byte // lines that name an event
	dropped bool   // the last event did not pass
}

// Write takes the next bytes.
func (l *Lines) Write(p []byte) {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n') + 1
		if n == 0 {
			l.line = append(l.line, p...)
			return
		}
		l.line = append(l.line, p[:n]...)
		p = p[n:]
		l.end()
	}
}

// Close takes the last line, if its end is missing.
func (l *Lines) Close() {
	if len(l.line) > 0 {
		l.end()
	}
	*l = Lines{Take: l.Take, Pass: l.Pass}
}

func (l *Lines) end() {
	line := l.line
	text := bytes.TrimRight(line, "\r\n")
	data, is := dataOf(text)
	switch {
	case is:
		l.named = append(l.named, line...)
		l.dropped = !l.Take(data, l.named)
		l.named = l.named[:0]
	case bytes.HasPrefix(text, []byte("event:")) || bytes.HasPrefix(text, []byte("id:")):
		l.named = append(l.named, line...)
	case len(text) > 0 || !l.dropped:
		l.Pass(line)
	}
	l.line = l.line[:0]
}
