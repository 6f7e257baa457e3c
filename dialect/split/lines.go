package split

import "bytes"

// Lines reads a stream of server-sent events in order to rewrite it. The data of each data line is passed to Take, with
// the raw lines it came in: the event and id lines before it, and the data line itself. Take reports whether it kept any of
// them. All other lines are passed to Pass. A line is processed once it is complete.
type Lines struct {
	Take func(data, lines []byte) bool
	Pass func(line []byte)

	line    []byte
	named   []byte // lines that name the event
	dropped bool   // Take kept nothing of the last event
}

// Write takes the next bytes of the stream.
func (l *Lines) Write(p []byte) {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n') + 1
		if n == 0 {
			l.line = append(l.line, p...)
			return
		}
		l.line = append(l.line, p[:n]...)
		p = p[n:]
		l.endLine()
	}
}

// Close processes a last line without a line feed, and resets l for another stream.
func (l *Lines) Close() {
	if len(l.line) > 0 {
		l.endLine()
	}
	*l = Lines{Take: l.Take, Pass: l.Pass}
}

func (l *Lines) endLine() {
	line := l.line
	text := bytes.TrimRight(line, "\r\n")
	data, isData := dataOf(text)
	switch {
	case isData:
		l.named = append(l.named, line...)
		l.dropped = !l.Take(data, l.named)
		l.named = l.named[:0]
	case bytes.HasPrefix(text, []byte("event:")) || bytes.HasPrefix(text, []byte("id:")):
		l.named = append(l.named, line...)
	case len(text) > 0 || !l.dropped: // the empty line behind a dropped event goes too
		l.Pass(line)
	}
	l.line = l.line[:0]
}
