package split

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Events parses a stream of server-sent events (WHATWG HTML, 9.2): lines end in LF, CR LF or CR, an empty line ends an
// event, and a line that starts with a colon is a comment. Fields other than data are ignored. The stream may be written
// in pieces of any size.
//
// Each data line is passed to Take at once, since many servers put a whole chunk into each line, and some leave out the
// empty line. Take reports whether it could use the data. If not, the data lines of the event are joined and passed to Take
// again at the end of the event. A line, or the data of an event, of more than MaxAnswer bytes is skipped.
type Events struct {
	Take   func(data []byte) bool
	Unused bool // set when Take could not use the data of an event

	line    []byte
	long    bool // the line exceeds MaxAnswer
	cr      bool // the last byte was a CR that ended a line
	begun   bool // the first line has ended
	data    []byte
	partial bool // data holds lines that Take could not use
	lost    bool // the event exceeds MaxAnswer
}

// Write takes the next bytes of the stream.
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
	if e.long || len(e.line)+len(p) > MaxAnswer {
		e.long = true
		e.line = e.line[:0]
		return
	}
	e.line = append(e.line, p...)
}

func (e *Events) endLine() {
	line := e.line
	if !e.begun {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	data, ok := DataOf(line)
	switch {
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
	if !e.partial && e.Take(data) || e.lost {
		return
	}
	if len(e.data)+len(data) >= MaxAnswer {
		e.lost = true
		return
	}
	if e.partial {
		e.data = append(e.data, '\n')
	}
	e.data = append(e.data, data...)
	e.partial = true
}

func (e *Events) endEvent() {
	if e.partial && !e.lost && !e.Take(e.data) {
		e.Unused = true
	}
	e.data, e.partial, e.lost = e.data[:0], false, false
}

// Pending returns the data on the current line, which has not ended yet.
func (e *Events) Pending() []byte {
	if e.long {
		return nil
	}
	data, _ := DataOf(e.line)
	return data
}

// DataOf returns the value of a data field.
func DataOf(line []byte) ([]byte, bool) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	return bytes.TrimPrefix(data, []byte{' '}), ok
}

// Opening reports whether is holds for all objects in an event of a stream. It is true of an event without data, such as a comment.
func Opening(event []byte, is func(rawjson.Value) bool) bool {
	opening := true
	events := Events{Take: func(data []byte) bool {
		object := IsObject(data)
		opening = opening && object && is(rawjson.ValueOf(data))
		return object
	}}
	events.Write(event)
	return opening
}

// Blank reports whether a value is missing, null, false or empty, or consists only of such values. It ignores the members named in apart.
func Blank(v rawjson.Value, apart ...string) bool {
	for key, member := range rawjson.Members(v.Raw) {
		if !slices.Contains(apart, string(key.Raw)) && !Blank(member, apart...) {
			return false
		}
	}
	for element := range rawjson.Elements(v.Raw) {
		if !Blank(element, apart...) {
			return false
		}
	}
	return v.Kind != rawjson.Number && v.Kind != rawjson.True && len(v.Inner()) == 0
}
