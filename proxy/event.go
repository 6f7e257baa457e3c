package proxy

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// eventTimeout is how long to wait for the first event of a stream. An upstream that checks a request's length does so at once; some send
// their header long before their model has read the prompt, and clients want to see it.
const eventTimeout = time.Second

// firstEvent is a stream whose first event is read in advance, along with any opening events before it, which only announce an answer.
type firstEvent struct {
	body      io.ReadCloser
	piece     bool                    // the body is not a stream: one piece of it is read, since more may come late
	isOpening func(event []byte) bool // reports whether an event only opens the stream; nil: none does
	done      chan struct{}           // closed when the fields below are set
	head      []byte
	opening   int // bytes of head that opening events take
	err       error
	rest      io.Reader // set by the first Read
}

func (o *Options) openEvent(resp *http.Response, in dialect.Dialect) *firstEvent {
	e := &firstEvent{body: resp.Body, piece: !isEventStream(resp.Header), done: make(chan struct{})}
	if opener, ok := in.(dialect.Opener); ok {
		e.isOpening = func(event []byte) (opening bool) {
			o.guard(func() { opening = opener.Opening(event) })
			return opening
		}
	}
	go e.fetch()
	return e
}

// fetch reads to the end of the first event, or to a comment: comments keep a client waiting and are passed on at once.
func (e *firstEvent) fetch() {
	defer close(e.done)
	buffer := make([]byte, 4<<10)
	for e.err == nil && len(e.head) < maxRefusal {
		var n int
		n, e.err = e.body.Read(buffer)
		e.head = append(e.head, buffer[:n]...)
		if e.piece || e.skipOpening() {
			return
		}
	}
}

// skipOpening skips opening events in head, and reports whether another event or a comment comes after them.
func (e *firstEvent) skipOpening() bool {
	for {
		rest := e.head[e.opening:]
		if bytes.HasPrefix(rest, []byte{':'}) {
			return true
		}
		end := endOfEvent(rest)
		if end == 0 {
			return false
		}
		if e.isOpening == nil || !e.isOpening(rest[:end]) {
			return true
		}
		e.opening += end
	}
}

// endOfEvent returns the length of the first event including the empty line that ends it, 0 if it has not ended.
func endOfEvent(stream []byte) int {
	end := 0
	for _, mark := range [...]string{"\n\n", "\n\r\n"} {
		if i := bytes.Index(stream, []byte(mark)); i >= 0 && (end == 0 || i+len(mark) < end) {
			end = i + len(mark)
		}
	}
	return end
}

// peek returns what was read after the opening events, nil if the first event does not arrive in time.
func (e *firstEvent) peek() []byte {
	timer := time.NewTimer(eventTimeout)
	defer timer.Stop()
	select {
	case <-e.done:
		return e.head[e.opening:]
	case <-timer.C:
		return nil
	}
}

func (e *firstEvent) Read(p []byte) (int, error) {
	if e.rest == nil {
		<-e.done
		e.rest = prepend(e.head, e.body, e.err)
	}
	return e.rest.Read(p)
}

// Close implements io.Closer. It ends fetch.
func (e *firstEvent) Close() error {
	err := e.body.Close()
	<-e.done
	return err //nolint:wrapcheck // the body's own
}
