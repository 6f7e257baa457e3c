package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Answers of more than one piece, as a request's header asks for them.
const (
	// answerHold never answers, answerGap falls silent after a piece, answerPart stops inside one. They watch for the
	// connection's end.
	answerHold = "hold"
	answerGap  = "gap"
	answerPart = "part"
	// partAfter is how long after its first piece the second one begins.
	partAfter = 10 * time.Millisecond
)

// answerBulk asks for a stream of so many pieces of bulkEvents events, as fast as they go.
func answerBulk(pieces int) string { return fmt.Sprintf("stream,%d,-1", pieces) }

const bulkEvents = 50

// answerStream asks for a stream of so many events, one each pause; 0: as fast as they go.
func answerStream(events int, pause time.Duration) string {
	return fmt.Sprintf("stream,%d,%d", events, pause)
}

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
	eventHead  = `data: {"id":"chatcmpl-stream","object":"chat.completion.chunk","created":1767225600,"model":"` + Model +
		`","choices":[{"index":0,"delta":{"content":"`
	eventTail  = "\"},\"finish_reason\":null}]}\n\n"
	streamDone = "data: [DONE]\n\n"
	// clockMark is before the time at which an event was sent, in nanoseconds since the run began, 16 digits.
	clockMark   = "sent "
	clockDigits = 16
)

// stream sends events, each with the time of its sending.
func (x *exchange) stream(options string, received int) error {
	first, second, _ := strings.Cut(options, ",")
	events, err := strconv.Atoi(first)
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	pause, err := strconv.ParseInt(second, 10, 64)
	if err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	if _, err := io.WriteString(x.conn, streamHead); err != nil {
		return err
	}
	next := time.Now()
	for range events {
		event := appendEvent(nil, time.Since(x.mock.begun))
		if pause < 0 {
			event = bytes.Repeat(event, bulkEvents)
		}
		x.out = appendChunk(x.out[:0], event)
		if _, err := x.conn.Write(x.out); err != nil {
			return err
		}
		if pause > 0 {
			next = next.Add(time.Duration(pause))
			time.Sleep(time.Until(next))
		}
	}
	last := append([]byte(`data: {"id":"chatcmpl-stream","object":"chat.completion.chunk","created":1767225600,"model":"`+Model+`","choices":[],`), appendUsage(nil, received)...)
	last = append(last, "}\n\n"+streamDone...)
	_, err = x.conn.Write(append(appendChunk(x.out[:0], last), "0\r\n\r\n"...))
	return err
}

func appendEvent(b []byte, at time.Duration) []byte {
	b = append(b, eventHead+clockMark...)
	return append(fmt.Appendf(b, "%0*d ", clockDigits, at), eventTail...)
}

func appendChunk(b, data []byte) []byte {
	b = strconv.AppendInt(b, int64(len(data)), 16)
	b = append(b, "\r\n"...)
	b = append(b, data...)
	return append(b, "\r\n"...)
}

// sentAt reads the time from an event.
func sentAt(event []byte) (time.Duration, bool) {
	i := bytes.Index(event, []byte(clockMark))
	if i < 0 || len(event) < i+len(clockMark)+clockDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(string(event[i+len(clockMark):i+len(clockMark)+clockDigits]), 10, 64)
	return time.Duration(n), err == nil
}

// leaving answers up to a point, and tells when the other side leaves.
func (x *exchange) leaving(kind string) error {
	event := string(appendChunk(nil, appendEvent(nil, time.Since(x.mock.begun))))
	var pieces []string
	switch kind {
	case answerHold:
	case answerGap:
		pieces = []string{streamHead + event}
	case answerPart:
		pieces = []string{streamHead + event, event[:len(event)/2]}
	default:
		return fmt.Errorf("no answer %q", kind)
	}
	for i, piece := range pieces {
		time.Sleep(time.Duration(i) * partAfter)
		if _, err := io.WriteString(x.conn, piece); err != nil {
			return err
		}
	}
	x.mock.hold(x.conn)
	signal(x.mock.reached, time.Now())
	_, err := x.r.ReadByte()
	if err == nil {
		return errors.New("a byte more than the request has")
	}
	signal(x.mock.left, time.Now())
	return err
}

// signal tells a time, unless the last one is not taken yet.
func signal(to chan<- time.Time, at time.Time) {
	select {
	case to <- at:
	default:
	}
}

// hold remembers the connection that waits for its client to leave.
func (m *Mock) hold(conn net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = conn
}

// release ends that connection: its client has left, untold.
func (m *Mock) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held != nil {
		m.held.Close()
	}
}

// take waits for a time. ok is false if none came.
func take(from <-chan time.Time, wait time.Duration) (at time.Time, ok bool) {
	select {
	case at = <-from:
		return at, true
	case <-time.After(wait):
		return at, false
	}
}
