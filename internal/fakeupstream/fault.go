package fakeupstream

import (
	"errors"
	"net"
	"net/http"
)

// Break is how a response ends before its time.
type Break int

const (
	BreakNone  Break = iota
	BreakClose       // the connection is closed: no last chunk, fewer bytes than Content-Length announced
	BreakReset       // the connection is reset (TCP RST)
	BreakEnd         // a stream ends as if it were whole: half of it, cleanly framed; a whole body is broken as by BreakClose
)

// Fault is what goes wrong with one answer, success or error alike. It counts pieces: of a stream the events, of a whole
// body blocks of 64 bytes. A channel that is held on releases at one value or when closed; the client's leaving and the
// server's Close release too.
type Fault struct {
	HoldHeaders <-chan struct{} // nothing is sent before
	Hold        <-chan struct{} // after HoldAfter pieces (the headers are out, even if 0) nothing more is sent before
	HoldAfter   int
	Drip        <-chan struct{} // one value lets one piece go; closed, all
	Break       Break
	BreakAfter  int // pieces; -1 is before the headers
}

// blockSize is a piece of a whole body, in bytes.
const blockSize = 64

func (f Fault) slow() bool { return f.Hold != nil || f.Drip != nil || f.Break != BreakNone }

func (f Fault) holdsAt(sent int) bool { return f.Hold != nil && sent == f.HoldAfter }

var (
	// errLeft says that the client or the server went away while a fault held the answer.
	errLeft = errors.New("fakeupstream: exchange is over")
	// errBroken says that a fault broke the answer off.
	errBroken = errors.New("fakeupstream: broken off")
	// errHalf says that a fault ended a stream early, and cleanly.
	errHalf = errors.New("fakeupstream: half a stream")
)

// hold waits for the channel; nil does not hold.
func (x *exchange) hold(until <-chan struct{}) error {
	if until == nil {
		return nil
	}
	select {
	case <-until:
		return nil
	case <-x.r.Context().Done():
		return errLeft
	case <-x.server.quit:
		return errLeft
	}
}

// send writes the pieces, each flushed, with the faults between them. The headers are out. A client may leave as soon as
// it has the last piece, and that is no cancelling: so the exchange counts as done just before it.
func (x *exchange) send(pieces [][]byte, f Fault) error {
	for i := 0; i <= len(pieces); i++ {
		if err := x.between(i, f); err != nil {
			return err
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
	return nil
}

// between does what the fault wants done after so many pieces.
func (x *exchange) between(sent int, f Fault) error {
	if f.holdsAt(sent) {
		if err := x.hold(f.Hold); err != nil {
			return err
		}
	}
	if f.Break != BreakNone && sent == f.BreakAfter {
		return x.breakOff(f.Break)
	}
	return nil
}

func (x *exchange) write(piece []byte) error {
	if _, err := x.w.Write(piece); err != nil {
		return err
	}
	return http.NewResponseController(x.w).Flush()
}

// breakOff ends the answer as told. That it is an error makes net/http close the connection without ending the body.
func (x *exchange) breakOff(how Break) error {
	switch how {
	case BreakReset:
		x.reset()
	case BreakEnd:
		if x.req.Stream {
			return errHalf
		}
	}
	return errBroken
}

// reset takes the connection over and makes the kernel send RST for FIN. Over HTTP/2 there is none to take.
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
