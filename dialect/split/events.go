package split

import "bytes"

// Events reads a stream of server-sent events (WHATWG HTML, 9.2): lines end in LF, CR LF or CR, an empty line ends an
// event, lines that begin with a colon are comments. Only data is looked at. It may be cut anywhere.
//
// A data line goes to Take at once, since many servers put a whole chunk into each line and some forget the empty line.
// Take reports whether it could use it. If not, the lines of the event are put together, and offered again at its end.
type Events struct {
	Take func(data []byte) bool
	Most int // bytes of a line or event that are kept

	line    []byte
	long    bool // the line is longer than that
	cr      bool // the last byte was a CR that ended a line
	begun   bool // the first line has passed
	data    []byte
	partial bool // data has lines that Take could not use
	lost    bool // the event is longer than most
}

// Write takes the next bytes.
func (e *Events) Write(p []byte) {
	for len(p) > 0 {
		if e.cr && p[0] == '\n' {
			p = p[1:]
		}
		e.cr = false
		n := bytes.IndexAny(p, "\r\n")
		if n < 0 {
			e.keep(p)
			return
		}
		e.keep(p[:n])
		e.cr = p[n] == '\r'
		p = p[n+1:]
		e.endLine()
	}
}

func (e *Events) keep(p []byte) {
	if e.long || len(e.line)+len(p) > e.Most {
		e.long, e.line = true, e.line[:0]
		return
	}
	e.line = append(e.line, p...)
}

func (e *Events) endLine() {
	line := e.line
	if !e.begun {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	switch data, ok := dataOf(line); {
	case e.long:
		e.lost = true
	case len(line) == 0:
		e.endEvent()
	case ok:
		e.add(data)
	}
	e.line, e.long, e.begun = e.line[:0], false, true
}

func (e *Events) add(data []byte) {
	switch {
	case !e.partial && e.Take(data), e.lost:
	case len(e.data)+len(data) >= e.Most:
		e.lost = true
	default:
		if e.partial {
			e.data = append(e.data, '\n')
		}
		e.data, e.partial = append(e.data, data...), true
	}
}

func (e *Events) endEvent() {
	if e.partial && !e.lost {
		e.Take(e.data)
	}
	e.data, e.partial, e.lost = e.data[:0], false, false
}

// Pending is the data on the line that has not ended yet.
func (e *Events) Pending() []byte {
	if e.long {
		return nil
	}
	data, _ := dataOf(e.line)
	return data
}

// dataOf is the value of a data field.
func dataOf(line []byte) ([]byte, bool) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	return bytes.TrimPrefix(data, []byte{' '}), ok
}
