package split

import "github.com/dewpoint-proxy/dewpoint/dialect"

// Whole is the dialect.Tee of an answer that is not streamed. It ends once the outermost bracket has closed, even if the body is
// too long to be read; a body that is no object or array never ends.
type Whole struct {
	Read func(body []byte)     // gets the body once, when it has ended
	Give func() dialect.Answer // what Read has learnt
	Most int                   // bytes of a body that is read

	body []byte
	end  End
	done bool // it was read, or is too long for that
}

// Write takes the next bytes.
func (w *Whole) Write(p []byte) {
	p = p[:w.end.Write(p)]
	if w.done = w.done || len(w.body)+len(p) > w.Most; w.done {
		w.body = nil
		return
	}
	w.body = append(w.body, p...)
}

// Ended reports whether the body has come to its end.
func (w *Whole) Ended() bool { return w.end.Closed }

// Answer is what was learnt so far.
func (w *Whole) Answer() dialect.Answer {
	if !w.done && w.end.Closed {
		w.done = true
		w.Read(w.body)
		w.body = nil
	}
	return w.Give()
}
