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
	// Said returns what the model said in this answer.
	Said() dialect.Said
	// Next starts another answer.
	Next()
	// Echo returns the answer as the client will send it back, or nil if that cannot be known.
	Echo() []byte
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
	f.body = append(f.body, p...)
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

func (f *wholeFilter) Finish() []byte {
	if !split.IsObject(f.body) {
		return f.body
	}
	return f.Rest(f.body)
}

// streamFilter filters streams. It processes a line once it is complete.
type streamFilter struct {
	Reader
	line    []byte // that is not complete yet
	named   []byte // lines that name the next event
	dropped bool   // the client received nothing of the last event
	out     []byte // for the client, from the current Write
	kept    []byte // see Output.Wait
	waiting bool
	end     []byte // the end of an answer that may not be the last one
	ending  bool
}

func (f *streamFilter) Write(p []byte) []byte {
	f.out = nil
	for line := range bytes.Lines(p) {
		f.line = append(f.line, line...)
		if line[len(line)-1] == '\n' {
			f.endLine()
		}
	}
	return f.out
}

func (f *streamFilter) Close() dialect.Said {
	f.out = nil
	if len(f.line) > 0 {
		f.endLine()
	}
	f.named, f.dropped, f.waiting = nil, false, false
	f.emit(nil)
	return f.Said()
}

func (f *streamFilter) Next() {
	f.Reader.Next()
	f.end, f.ending = nil, false
}

func (f *streamFilter) Finish() []byte { return append(f.out, f.end...) }

func (f *streamFilter) endLine() {
	text := bytes.TrimRight(f.line, "\r\n")
	data, isData := split.DataOf(text)
	switch {
	case isData:
		f.named = append(f.named, f.line...)
		f.dropped = !f.take(data, f.named)
		f.named = f.named[:0]
	case bytes.HasPrefix(text, []byte("event:")) || bytes.HasPrefix(text, []byte("id:")):
		f.named = append(f.named, f.line...)
	case len(text) > 0 || !f.dropped: // the empty line after a dropped event is dropped too
		f.emit(f.line)
	}
	f.line = f.line[:0]
}

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
	*to = append(append(*to, f.kept...), text...)
	f.kept = nil
}
