package h1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// errUnanswered: a kept connection was closed before a byte of the response had come, and so soon that upstream can hardly
// have taken the request.
var errUnanswered = errors.New("kept connection closed")

// crossing is how long a request and the end of its connection may be on their way to each other. Who ends it later has
// read the request: it may have been served, and paid for, and must not be sent again (RFC 9110, section 9.2.2).
const crossing = time.Second

// exchange is one request and its response on a connection.
type exchange struct {
	t     *Transport
	c     *conn
	req   *http.Request
	stop  func() bool  // ends the watch over the request's context
	sent  chan outcome // the outcome of a write that goes on beside, nil if there is none
	fresh bool
	begun time.Time
}

// exchange writes a request and reads the head of its response. The connection is closed if that fails.
func (t *Transport) exchange(req *http.Request, c *conn, head []byte, body [][]byte) (*http.Response, error) {
	ctx := req.Context()
	x := &exchange{t: t, c: c, req: req, fresh: c.since.IsZero(), begun: time.Now()}
	x.stop = context.AfterFunc(ctx, func() { _ = c.wire.Close() })
	var err error
	if x.sent, err = c.send(head, body); err != nil {
		return nil, x.fail(fmt.Errorf("write request: %w", err), true)
	}
	resp, early, err := x.answer()
	if err != nil {
		return nil, x.fail(fmt.Errorf("read response: %w", err), early)
	}
	keep := !resp.Close && resp.StatusCode != http.StatusSwitchingProtocols
	if resp.Body == http.NoBody {
		x.finish(keep)
		return resp, nil
	}
	from := io.Reader(resp.Body)
	if len(resp.TransferEncoding) > 0 { // "chunked", or it would have been refused
		from = &chunks{in: c.in}
	}
	resp.Body = &answer{Reader: from, x: x, keep: keep}
	return resp, nil
}

// answer reads the head of the response; early, if that failed before anything came.
func (x *exchange) answer() (resp *http.Response, early bool, err error) {
	if wait := x.t.o.HeaderWait; wait > 0 {
		_ = x.c.SetReadDeadline(time.Now().Add(wait))
		defer func() { _ = x.c.SetReadDeadline(time.Time{}) }()
	}
	x.c.left = maxHead
	defer func() { x.c.left = -1 }()
	if _, err := x.c.in.Peek(1); err != nil {
		return nil, true, err
	}
	for {
		resp, err := http.ReadResponse(x.c.in, x.req)
		if err != nil {
			return nil, false, err
		}
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, false, nil
		}
	}
}

// fail closes the connection and says why: a cancelled context is the cause of whatever followed. early: nothing of a
// response had come.
func (x *exchange) fail(err error, early bool) error {
	x.drop()
	var timeout interface{ Timeout() bool }
	switch {
	case x.req.Context().Err() != nil:
		return fmt.Errorf("exchange: %w", context.Cause(x.req.Context()))
	case early && !x.fresh && time.Since(x.begun) < x.t.crossing && !(errors.As(err, &timeout) && timeout.Timeout()):
		return fmt.Errorf("%w: %w", errUnanswered, err)
	}
	return err
}

// drop closes the connection and waits for the write to end, so that the request's body is free.
func (x *exchange) drop() {
	x.stop()
	_ = x.c.wire.Close()
	if x.sent != nil {
		<-x.sent
	}
}

// finish ends an exchange whose response was read to its end: the connection is kept if it can be.
func (x *exchange) finish(keep bool) {
	switch {
	case x.sent != nil && !x.written(), !keep, x.c.in.Buffered() > 0, !x.stop():
		x.drop()
	default:
		x.t.idle.put(x.c)
	}
	if x.req.Body != nil {
		_ = x.req.Body.Close()
	}
}

// written reports whether the whole request has been written. Whoever has answered it has usually read it: then the
// write is over, or about to be.
func (x *exchange) written() bool {
	soon := time.NewTimer(aboutToEnd)
	defer soon.Stop()
	select {
	case o := <-x.sent:
		x.sent = nil
		return o.err == nil
	case <-soon.C:
		return false
	}
}

const aboutToEnd = 5 * time.Millisecond

// answer is a response's body. Its end gives the connection back; closed before, it takes the connection along.
type answer struct {
	io.Reader
	x    *exchange
	keep bool
	once sync.Once
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) {
		if ctx := a.x.req.Context(); ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	whole := errors.Is(err, io.EOF)
	a.once.Do(func() { a.x.finish(whole && a.keep) })
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	a.once.Do(func() { a.x.finish(false) })
	return nil
}
