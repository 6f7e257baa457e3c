package proxy

import (
	"bytes"
	"io"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// eventWait is how long the first event of a stream is waited for. An upstream that looks at a request's length does so at once; some
// send their header long before their model has read the prompt, and clients want to see it.
const eventWait = time.Second

// firstEvent is a stream whose first event is read ahead, behind those that only say that there will be some.
type firstEvent struct {
	body    io.ReadCloser
	opening func(event []byte) bool // reports whether an event is such; nil: none is
	came    chan struct{}           // closed when the fields below are there
	head    []byte
	opened  int // bytes of head that the opening takes
	err     error
	rest    io.Reader // nil: nothing was read of the stream
}

func (o *Options) openEvent(body io.ReadCloser, in dialect.Dialect) *firstEvent {
	e := &firstEvent{body: body, came: make(chan struct{})}
	if d, has := in.(dialect.Opener); has {
		e.opening = func(event []byte) (is bool) {
			o.survives(func() { is = d.Opening(event) })
			return is
		}
	}
	go e.fetch()
	return e
}

// fetch reads up to the end of the first event. Comments are not waited behind: they keep a client waiting, and are handed on as they
// come.
func (e *firstEvent) fetch() {
	defer close(e.came)
	next := make([]byte, 4<<10)
	for told := false; e.err == nil && !told && len(e.head) < refusalRead; {
		var n int
		n, e.err = e.body.Read(next)
		e.head = append(e.head, next[:n]...)
		told = e.told()
	}
}

// told reports whether an event is there that says something, or a comment.
func (e *firstEvent) told() bool {
	for {
		rest := e.head[e.opened:]
		if bytes.HasPrefix(rest, []byte{':'}) {
			return true
		}
		end := endOfEvent(rest)
		if end == 0 || e.opening == nil || !e.opening(rest[:end]) {
			return end > 0
		}
		e.opened += end
	}
}

// endOfEvent is the length of the first event with the empty line that ends it, 0 if it has not ended.
func endOfEvent(stream []byte) int {
	ended := 0
	for _, mark := range [...]string{"\n\n", "\n\r\n"} {
		if i := bytes.Index(stream, []byte(mark)); i >= 0 && (ended == 0 || i+len(mark) < ended) {
			ended = i + len(mark)
		}
	}
	return ended
}

// soon gives what was read, nil if the event does not come in time.
func (e *firstEvent) soon() []byte {
	late := time.NewTimer(eventWait)
	defer late.Stop()
	select {
	case <-e.came:
		return e.head[e.opened:]
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
