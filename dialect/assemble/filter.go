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
	End  []byte // ends an answer with hidden calls only: it is held back together with all that follows
	Wait bool   // Text, and anything passed with it, is kept until an Output without Wait
	Drop bool   // what was kept so far is dropped
}

// NewFilter returns a filter that passes answers to r.
func NewFilter(streamed bool, r Reader) dialect.AnswerFilter {
	if !streamed {
		return &wholeFilter{Reader: r}
	}
	f := &streamFilter{Reader: r}
	f.lines = split.Lines{Take: f.take, Pass: f.emit}
	return f
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

// streamFilter filters streams.
type streamFilter struct {
	Reader
	lines   split.Lines
	out     []byte // for the client, from the current Write
	kept    []byte // see Output.Wait
	waiting bool
	end     []byte // the end of an answer that may not be the last one
	ending  bool
}

func (f *streamFilter) Write(p []byte) []byte {
	f.out = nil
	f.lines.Write(p)
	return f.out
}

func (f *streamFilter) Close() dialect.Said {
	f.out = nil
	f.lines.Close()
	f.waiting = false
	f.emit(nil)
	return f.Said()
}

func (f *streamFilter) Next() {
	f.Reader.Next()
	f.end, f.ending = nil, false
}

func (f *streamFilter) Finish() []byte { return append(f.out, f.end...) }

// take reads an event and emits what the client receives of it.
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
