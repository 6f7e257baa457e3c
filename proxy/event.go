package proxy

import (
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// eventTimeout is how long the first events of a stream may be held back. An upstream that checks a request's length does so at once; some send
// their header long before their model has read the prompt, and clients want to see it.
const eventTimeout = time.Second

// maxOpening is how many bytes of a stream are held back at most. The Responses API repeats instructions and tools in its opening events.
const maxOpening = 4 * maxRefusal

// firstEvent is a stream whose first event is read in advance, along with the comments and opening events before it, which only announce an
// answer. Even a comment that keeps a client waiting can be held back for a second, and gateways send one before they ask the model.
type firstEvent struct {
	body      io.ReadCloser
	piece     bool                    // the body is not a stream: one piece of it is read, since more may come late
	isOpening func(event []byte) bool // reports whether an event only opens the stream; nil: none does
	buffer    []byte                  // what is being read
	read      chan int                // bytes in buffer, once err is set
	late      bool                    // the first event did not come in time, so nothing is held back any more
	head      []byte                  // what was read and not passed on
	opening   int                     // bytes of head that opening events take
	err       error                   // comes after head
}

func (o *Options) openEvent(resp *http.Response, in dialect.Dialect) *firstEvent {
	e := &firstEvent{body: resp.Body, piece: !isEventStream(resp.Header), buffer: make([]byte, 4<<10), read: make(chan int, 1)}
	if in != nil {
		e.isOpening = func(event []byte) (opening bool) {
			o.guard(func() { opening = in.Opening(event) })
			return opening
		}
	}
	return e
}

// peek reads to the end of the first event, and returns what was read after the opening events, nil if it does not come in time. It must
// be called once, before Read.
func (e *firstEvent) peek() []byte {
	timer := time.NewTimer(eventTimeout)
	defer timer.Stop()
	for e.err == nil && len(e.head) < maxOpening {
		go func() {
			var n int
			n, e.err = e.body.Read(e.buffer)
			e.read <- n
		}()
		select {
		case <-timer.C:
			e.late = true
			return nil
		case n := <-e.read:
			e.head = append(e.head, e.buffer[:n]...)
		}
		if e.piece || e.skipOpening() {
			break
		}
	}
	return e.head[e.opening:]
}

// skipOpening skips opening events in head, and reports whether another event comes after them.
func (e *firstEvent) skipOpening() bool {
	for {
		rest := e.head[e.opening:]
		end := endOfEvent.FindIndex(rest)
		switch {
		case end == nil:
			return false
		case e.isOpening == nil || !e.isOpening(rest[:end[1]]):
			return true
		}
		e.opening += end[1]
	}
}

// endOfEvent matches the end of a line and the empty line after it, which ends an event.
var endOfEvent = regexp.MustCompile(`\n\r?\n`)

func (e *firstEvent) Read(p []byte) (int, error) {
	if len(e.head) == 0 && e.late {
		e.head, e.late = e.buffer[:<-e.read], false
	}
	switch {
	case len(e.head) > 0:
		n := copy(p, e.head)
		if e.head = e.head[n:]; len(e.head) == 0 && !e.late {
			e.head, e.buffer = nil, nil
		}
		return n, nil
	case e.err != nil:
		return 0, e.err
	}
	return e.body.Read(p) // its error is passed on as it is
}

// Close implements io.Closer. It ends the Read of peek.
func (e *firstEvent) Close() error {
	err := e.body.Close()
	if e.late {
		<-e.read
		e.late = false
	}
	return err // of the body, passed on as it is
}
