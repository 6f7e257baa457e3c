package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// errBroken breaks the client's response because upstream's broke.
var errBroken = errors.New("upstream broke off its answer")

// errDefect breaks the client's response because the relay itself failed.
var errDefect = errors.New("the relay panicked")

// relay hands an upstream response to the client as it comes. fasthttp reads it after the handler has returned, flushes
// after each read, and closes it once, whatever happens; ended then gets the outcome.
type relay struct {
	from     *http.Response
	tee      dialect.Tee // nil: nothing reads along
	first    []byte      // comes before the answer, an event of its own
	last     func()      // called before the end of the answer is handed on; nil: nothing
	ended    func(outcome)
	state    outcome
	arrived  func()    // called when some of upstream's answer has come; it may be called again
	panicked func(any) // is told of a panic
	once     sync.Once

	idle   time.Duration // longest silence of either side, 0: no limit
	timer  *time.Timer
	cancel context.CancelCauseFunc // ends upstream's answer
	uncut  func()                  // gives back the client's connection
}

// errSilent ends an answer that stopped coming.
var errSilent = errors.New("upstream fell silent")

// outcome is how a relayed answer ended.
type outcome struct {
	Status    int
	Bytes     int64
	Completed bool  // upstream's answer ended as it should
	Err       error // why it did not
	Answer    dialect.Answer
}

// start makes the relay the body of the client's response, whose head is written already.
func (r *relay) start(to *fasthttp.Response) {
	size := r.size()
	to.ImmediateHeaderFlush = size < 0
	to.SetBodyStream(r, size)
	r.watch()
}

// watch begins to watch for upstream's silence.
func (r *relay) watch() {
	if r.idle > 0 {
		r.timer = time.AfterFunc(r.idle, func() { r.cancel(errSilent) })
	}
}

// skip ends a relay that has no body to hand on: that of a response to HEAD.
func (r *relay) skip(to *fasthttp.Response) {
	to.Header.SetContentLength(r.size())
	r.state.Completed = true
	_ = r.Close()
}

// size is the body's length, -1 if upstream does not say.
func (r *relay) size() int { return int(max(r.from.ContentLength, -1)) }

// Read gives the next bytes of the answer. It runs after the handler, which can catch no panic of it any more.
func (r *relay) Read(p []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			r.panicked(v)
			r.tee, r.last, r.state.Err = nil, nil, errDefect
			n, err = 0, errDefect
		}
	}()
	return r.next(p)
}

func (r *relay) next(p []byte) (int, error) {
	if r.state.Err != nil {
		return 0, r.state.Err
	}
	if len(r.first) > 0 {
		n := copy(p, r.first)
		r.first = r.first[n:]
		return n, nil
	}
	n, err := r.from.Body.Read(p)
	ended := errors.Is(err, io.EOF)
	if r.timer != nil {
		r.timer.Reset(r.idle)
	}
	if n > 0 {
		r.arrived()
	}
	r.state.Bytes += int64(n)
	whole := r.readAlong(p[:n], ended)
	switch {
	case err == nil:
		return n, nil
	case whole:
		r.state.Completed = true
		return n, io.EOF
	case ended:
		err = errBroken
	}
	r.state.Err = err
	if n > 0 {
		return n, nil // the next read gives the error again: the body stays broken
	}
	return 0, err
}

// readAlong reads what has come, has the answer remembered when it ends, and reports whether it ended as it should. An answer goes on
// without all that: where it panics, nothing reads along any more.
func (r *relay) readAlong(p []byte, ended bool) (whole bool) {
	defer func() {
		if v := recover(); v != nil {
			r.panicked(v)
			r.tee, r.last, whole = nil, nil, ended
		}
	}()
	if r.tee != nil && len(p) > 0 {
		r.tee.Write(p)
	}
	whole = ended && r.whole()
	if r.last != nil && (whole || r.ending()) {
		r.last()
		r.last = nil
	}
	return whole
}

// ending reports whether a client may take what has been read for the whole answer.
func (r *relay) ending() bool {
	return r.tee != nil && r.tee.Ended() || r.from.ContentLength >= 0 && r.state.Bytes >= r.from.ContentLength
}

// whole reports whether an answer that came to its end was one: a stream that stops before its end mark was cut off by
// something between here and the model.
func (r *relay) whole() bool {
	if r.state.Err != nil {
		return false
	}
	if r.tee == nil || r.from.StatusCode != http.StatusOK || !streamed(r.from.Header) {
		return true
	}
	return r.tee.Ended() || r.tee.Answer().Finish != ""
}

func streamed(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}

// Close ends the relay. It is called exactly once by the server, also when the client has left.
func (r *relay) Close() error {
	r.once.Do(func() {
		if r.timer != nil {
			r.timer.Stop()
		}
		if r.uncut != nil {
			r.uncut()
		}
		_ = r.from.Body.Close()
		if !r.state.Completed && r.state.Err == nil {
			r.state.Err = errClientGone
		}
		r.conclude()
	})
	return nil
}

// conclude tells the outcome. The server calls Close where a panic would end the process.
func (r *relay) conclude() {
	defer func() {
		if v := recover(); v != nil {
			r.panicked(v)
		}
	}()
	defer func() { r.ended(r.state) }() // whatever the tee does: the request releases what it holds
	if r.tee != nil {
		r.state.Answer = r.tee.Answer()
	}
}
