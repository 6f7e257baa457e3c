package assemble

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// Reader reads the answers of a dialect that become one, and decides what the client receives of them.
type Reader interface {
	// Event reads an event of a stream.
	Event(data []byte) Output
	// Whole reads an answer that is not streamed.
	Whole(body []byte)
	// Rest returns an answer that Whole has read, as the client receives it.
	Rest(body []byte) []byte
	// Ended tells that a stream without an end mark is complete. It is called before Said.
	Ended()
	// Said returns what the model said in this answer.
	Said() dialect.Said
	// Next starts another answer.
	Next()
	// Echo returns the answer as the client will send it back, or nil if that cannot be known.
	Echo() []byte
	// Held returns about how many bytes of the answers are kept.
	Held() int
	// Forget drops the answers and keeps no more of them.
	Forget()
	// PassesUnread reports whether an event that is too long to be read can be passed on, judging by its beginning.
	PassesUnread(head []byte) bool
}

// Output is what the client receives in place of an event. The zero value is nothing.
type Output struct {
	Text []byte
	End  []byte // ends an answer with hidden calls only: the client does not receive it, or anything after it, until Finish
	Wait bool   // Text, and the lines passed with it, are kept until an Output without Wait
	Drop bool   // everything kept so far is dropped
}

// NewFilter returns a filter that passes answers to r.
func NewFilter(streamed bool, r Reader) dialect.AnswerFilter {
	if !streamed {
		return &wholeFilter{Reader: r}
	}
	return &streamFilter{Reader: r}
}

// wholeFilter filters answers that are not streamed.
type wholeFilter struct {
	Reader
	body []byte
}

func (f *wholeFilter) Write(p []byte) []byte {
	if f.body == nil {
		f.body = slices.Clip(p)
	} else {
		f.body = append(f.body, p...)
	}
	return nil
}

func (f *wholeFilter) Close() dialect.Said {
	if split.IsObject(f.body) {
		f.Whole(f.body)
	}
	return f.Said()
}

func (f *wholeFilter) Next() {
	f.Reader.Next()
	f.body = nil
}

func (f *wholeFilter) Held() int { return len(f.body) + f.Reader.Held() }

func (f *wholeFilter) TooLong() bool { return false }

func (f *wholeFilter) Finish() []byte {
	if !split.IsObject(f.body) {
		return f.body
	}
	return f.Rest(f.body)
}

// streamFilter filters streams. It processes a line once it is complete.
type streamFilter struct {
	Reader
	event   []byte // lines that name the next event, and the line that is not complete yet
	line    int    // where that line begins
	unread  bool   // the line exceeds dialect.MaxEvent and is passed on as it is
	tooLong bool   // it does, and may not be passed on
	dropped bool   // the client received nothing of the last event
	out     []byte // for the client, from the current Write
	kept    []byte // see Output.Wait
	waiting bool
	end     []byte // the end of an answer that may not be the last one
	ending  bool
	forgot  bool
}

func (f *streamFilter) Write(p []byte) []byte {
	f.out = nil
	for line := range bytes.Lines(p) {
		ends := line[len(line)-1] == '\n'
		if f.unread {
			if !f.tooLong {
				f.emit(line)
			}
			f.unread = !ends
			continue
		}
		f.event = append(f.event, line...)
		switch {
		case len(f.event) > dialect.MaxEvent:
			f.passUnread()
			f.unread = !ends
		case ends:
			f.endLine()
		}
	}
	return f.out
}

// passUnread passes on the beginning of an event that is too long to be read, or else gives up the stream.
func (f *streamFilter) passUnread() {
	if f.tooLong = f.tooLong || !f.PassesUnread(f.event); !f.tooLong {
		f.Forget() // what is kept lacks this event
		f.dropped = false
		f.emit(f.event)
	}
	f.event, f.line = nil, 0
}

func (f *streamFilter) TooLong() bool { return f.tooLong }

func (f *streamFilter) Held() int { return len(f.event) + len(f.kept) + len(f.end) + f.Reader.Held() }

// Forget also drops the end of an answer that may not be the last one: the calls that hold it back cannot be answered any more.
func (f *streamFilter) Forget() {
	f.Reader.Forget()
	f.end, f.forgot = nil, true
	f.waiting = false
}

func (f *streamFilter) Close() dialect.Said {
	f.out = nil
	if f.line < len(f.event) {
		f.endLine()
	}
	f.event, f.line = nil, 0
	f.unread, f.dropped, f.waiting = false, false, false
	f.emit(nil)
	return f.Said()
}

func (f *streamFilter) Next() {
	f.Reader.Next()
	f.end, f.ending = nil, false
}

func (f *streamFilter) Finish() []byte { return append(f.out, f.end...) }

func (f *streamFilter) endLine() {
	text := bytes.TrimRight(f.event[f.line:], "\r\n")
	data, isData := split.DataOf(text)
	switch {
	case isData:
		f.dropped = !f.take(data, f.event)
		f.line = 0
	case bytes.HasPrefix(text, []byte("event:")) || bytes.HasPrefix(text, []byte("id:")):
		f.line = len(f.event)
	case len(text) > 0 || !f.dropped: // the empty line after a dropped event is dropped too
		f.emit(f.event[f.line:])
	}
	if f.event = f.event[:f.line]; f.line == 0 && cap(f.event) > maxReused {
		f.event = nil
	}
}

// maxReused is the size of the largest buffer that is kept for the next event, in bytes.
const maxReused = 64 << 10

// take reads an event and emits what the client receives of it. It returns false if the client receives nothing. lines are the lines of
// the event: those that name it, and the data line.
func (f *streamFilter) take(data, lines []byte) bool {
	o := Output{Text: data}
	if split.IsObject(data) || string(data) == split.Done {
		o = f.Event(data)
	}
	if o.Drop {
		f.kept = nil
	}
	f.waiting = o.Wait
	if o.Text != nil {
		f.emit(withData(lines, data, o.Text))
	}
	if o.End == nil {
		return o.Text != nil
	}
	if o.Text != nil {
		f.emit([]byte{'\n'})
	}
	f.ending = true
	f.emit(withData(lines, data, o.End))
	return true
}

// withData replaces the data in the lines of an event. The data line is the last one.
func withData(lines, data, text []byte) []byte {
	if bytes.Equal(data, text) {
		return lines
	}
	name := lines[:bytes.LastIndexByte(lines[:len(lines)-1], '\n')+1]
	return slices.Concat(name, []byte("data: "), text, []byte{'\n'})
}

// emit appends text, preceded by what was kept, to out or to end, unless it has to wait.
func (f *streamFilter) emit(text []byte) {
	if f.waiting {
		f.kept = append(f.kept, text...)
		return
	}
	to := &f.out
	if f.ending {
		to = &f.end
	}
	if !f.ending || !f.forgot {
		*to = append(append(*to, f.kept...), text...)
	}
	f.kept = nil
}
