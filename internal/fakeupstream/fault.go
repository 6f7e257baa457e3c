package fakeupstream

import (
	"net"
	"net/http"
)

// Break is a way in which a response ends early.
type Break int

const (
	BreakNone  Break = iota
	BreakClose       // the connection is closed: no last chunk, fewer bytes than Content-Length announced
	BreakReset       // the connection is reset (TCP RST)
	BreakEnd         // a stream ends early but cleanly; a whole body breaks as with BreakClose
)

// Fault describes what goes wrong with one answer, be it a success or an error. Positions count pieces: the events of a stream, or
// the 64-byte blocks of a whole body. A channel releases what it holds by one value or by being closed. So do the client's leaving
// and the server's Close.
type Fault struct {
	HoldHeaders <-chan struct{} // holds the whole answer
	Hold        <-chan struct{} // holds the rest of the answer after HoldAfter pieces; the headers are sent even if that is 0
	HoldAfter   int
	Drip        <-chan struct{} // holds each piece
	Break       Break
	BreakAfter  int // pieces; -1 is before the headers
}

// blockSize is the size of a piece of a whole body, in bytes.
const blockSize = 64

func (f Fault) slow() bool { return f.Hold != nil || f.Drip != nil || f.Break != BreakNone }

func (f Fault) holdsAt(sent int) bool { return f.Hold != nil && sent == f.HoldAfter }

// hold waits for the channel. A nil channel does not hold. The error means that the client or the server went away.
func (x *exchange) hold(until <-chan struct{}) error {
	if until == nil {
		return nil
	}
	select {
	case <-until:
		return nil
	case <-x.r.Context().Done():
	case <-x.server.quit:
	}
	return http.ErrAbortHandler
}

// send writes and flushes the pieces, with the faults between them. The headers have been sent. A client may leave as soon as it
// has the last piece, which does not count as cancelling, so the exchange is marked as done just before.
func (x *exchange) send(pieces [][]byte, f Fault) error {
	for i := 0; ; i++ {
		if f.holdsAt(i) {
			if err := x.hold(f.Hold); err != nil {
				return err
			}
		}
		if f.Break != BreakNone && i == f.BreakAfter {
			return x.breakOff(f.Break)
		}
		if i == len(pieces) {
			return nil
		}
		if err := x.hold(f.Drip); err != nil {
			return err
		}
		if i == len(pieces)-1 && !f.holdsAt(len(pieces)) {
			x.enter(PhaseDone)
		}
		if err := x.write(pieces[i]); err != nil {
			x.left()
			return err
		}
	}
}

func (x *exchange) write(piece []byte) error {
	if _, err := x.w.Write(piece); err != nil {
		return err
	}
	return http.NewResponseController(x.w).Flush()
}

// breakOff ends the answer early. The error makes net/http close the connection without ending the body.
func (x *exchange) breakOff(how Break) error {
	switch {
	case how == BreakReset:
		x.reset()
	case how == BreakEnd && x.req.Stream:
		return nil
	}
	return http.ErrAbortHandler
}

// reset hijacks the connection and makes the kernel send RST instead of FIN. HTTP/2 connections cannot be hijacked.
func (x *exchange) reset() {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
