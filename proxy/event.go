package proxy

import (
	"bytes"
	"io"
	"time"
)

// eventWait is how long the first event of a stream is waited for. An upstream that looks at a request's length does so at once; some
// send their header long before their model has read the prompt, and clients want to see it.
const eventWait = time.Second

// firstEvent is a stream whose first event is read ahead.
type firstEvent struct {
	body io.ReadCloser
	came chan struct{} // closed when head and err are there
	head []byte
	err  error
	rest io.Reader // nil: nothing was read of the stream
}

func openEvent(body io.ReadCloser) *firstEvent {
	e := &firstEvent{body: body, came: make(chan struct{})}
	go e.fetch()
	return e
}

// fetch reads up to the end of the first event. Comments are not waited behind: they keep a client waiting, and are handed on as they
// come.
func (e *firstEvent) fetch() {
	defer close(e.came)
	next := make([]byte, 4<<10)
	for e.err == nil && !hasEvent(e.head) && len(e.head) < refusalRead {
		var n int
		n, e.err = e.body.Read(next)
		e.head = append(e.head, next[:n]...)
	}
}

func hasEvent(head []byte) bool {
	return bytes.HasPrefix(head, []byte{':'}) || bytes.Contains(head, []byte("\n\n")) || bytes.Contains(head, []byte("\n\r\n"))
}

// soon gives what was read, nil if the event does not come in time.
func (e *firstEvent) soon() []byte {
	late := time.NewTimer(eventWait)
	defer late.Stop()
	select {
	case <-e.came:
		return e.head
	case <-late.C:
		return nil
	}
}

// Read implements io.Reader.
func (e *firstEvent) Read(p []byte) (int, error) {
	if e.rest == nil {
		<-e.came
		e.rest = readBefore(e.head, e.body, e.err)
	}
	return e.rest.Read(p)
}

// Close implements io.Closer. It ends what is still read.
func (e *firstEvent) Close() error {
	err := e.body.Close()
	<-e.came
	return err //nolint:wrapcheck // the body's own
}
