package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// What a request tells the mock: its id, and the answer that it wants.
const (
	headerID     = "X-Bench-Id"
	headerAnswer = "X-Bench-Answer"
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
	// bulkEvents is how many events a piece of a stream has that comes as fast as it goes.
	bulkEvents = 50
)

// answerStream asks for a stream of so many events, one each pause; below 0: of bulkEvents times as many, as fast as they go.
func answerStream(events int, pause time.Duration) string {
	return fmt.Sprintf("stream,%d,%d", events, pause)
}

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
	eventHead  = `data: {"id":"chatcmpl-stream","object":"chat.completion.chunk","created":1767225600,"model":"` + Model + `","choices":[`
	// clockMark is before the time at which an event was sent, in nanoseconds since the run began, 16 digits.
	clockMark   = "sent "
	clockDigits = 16
)

// Mock is the upstream that all targets forward to: it reads a request, answers at once, and compares what it read with what was expected.
type Mock struct {
	Expected *expectations

	listener net.Listener
	server   fasthttp.Server
	begun    time.Time // the zero of the times in streams
	compare  sync.Map  // by connection, what is to be done once its answer is written
}

// StartMock serves on a free port of the loopback.
func StartMock() (*Mock, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start mock: %w", err)
	}
	m := &Mock{Expected: newExpectations(), listener: l, begun: time.Now()}
	m.server = fasthttp.Server{
		Handler: m.serve, ConnState: m.after, MaxRequestBodySize: bareBody, ReadBufferSize: 64 << 10, NoDefaultServerHeader: true, NoDefaultDate: true,
	}
	go func() { _ = m.server.Serve(l) }() // it ends when Close does
	return m, nil
}

// Addr is where the mock listens.
func (m *Mock) Addr() string { return m.listener.Addr().String() }

// Close waits for the requests under way, for a while.
func (m *Mock) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = m.server.ShutdownWithContext(ctx) // what hangs ends with this process
}

// serve answers one request.
func (m *Mock) serve(ctx *fasthttp.RequestCtx) {
	id, _ := strconv.ParseUint(string(ctx.Request.Header.Peek(headerID)), 10, 64) // 0 is never expected
	first := m.Expected.arrived(id)
	body := ctx.PostBody()
	m.answer(ctx, id, len(body), first)
	switch {
	case first == nil:
	case ctx.Hijacked(), ctx.Request.ConnectionClose(): // the body is not kept
		m.Expected.came(first, body)
	default:
		m.compare.Store(ctx.Conn(), func() { m.Expected.came(first, body) })
	}
}

// after compares what was answered: the answer does not wait for it.
func (m *Mock) after(c net.Conn, is fasthttp.ConnState) {
	if compare, found := m.compare.LoadAndDelete(c); found && is == fasthttp.StateIdle {
		compare.(func())()
	}
}

// answer gives what was asked for. received is how many bytes the request's body had.
func (m *Mock) answer(ctx *fasthttp.RequestCtx, id uint64, received int, e *expectation) {
	kind, rest, _ := strings.Cut(string(ctx.Request.Header.Peek(headerAnswer)), ",")
	take := func(conn func(net.Conn) error) {
		ctx.HijackSetNoResponse(true)
		ctx.Hijack(func(c net.Conn) { _ = conn(c) }) // that the other side sees it break off is enough
	}
	ctx.SetContentType("application/json")
	ctx.Response.Header.Set("X-Request-Id", "req_bench")
	switch kind {
	case "", string(Messages), string(Responses), string(Gemini):
		ctx.SetBodyString(API(kind).turn(id, received))
	case "stream":
		take(func(c net.Conn) error { return m.stream(c, rest, received) })
	case answerHold, answerGap, answerPart:
		take(func(c net.Conn) error { return m.leaving(c, kind, e) })
	default:
		ctx.Error("no answer "+kind, fasthttp.StatusBadRequest)
	}
}

func usage(received int) string {
	prompt := received/bytesPerToken + 1
	return fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":24,"total_tokens":%d}`, prompt, prompt+24)
}

// bytesPerToken is about what the bodies have, so that the mock's usage is plausible.
const bytesPerToken = 3

// stream sends events, each with the time of its sending.
func (m *Mock) stream(conn net.Conn, options string, received int) error {
	var events int
	var pause time.Duration
	if _, err := fmt.Sscanf(options, "%d,%d", &events, &pause); err != nil {
		return fmt.Errorf("a stream of %q: %w", options, err)
	}
	if _, err := io.WriteString(conn, streamHead); err != nil {
		return err
	}
	next := time.Now()
	for range events {
		event := m.event()
		if pause < 0 {
			event = bytes.Repeat(event, bulkEvents)
		}
		if _, err := conn.Write(chunk(event)); err != nil {
			return err
		}
		if pause > 0 {
			next = next.Add(pause)
			time.Sleep(time.Until(next))
		}
	}
	last := eventHead + "]," + usage(received) + "}\n\ndata: [DONE]\n\n"
	_, err := conn.Write(append(chunk([]byte(last)), "0\r\n\r\n"...))
	return err
}

// event is an event of a stream that is sent now.
func (m *Mock) event() []byte {
	return fmt.Appendf(nil, `%s{"index":0,"delta":{"content":"%s%0*d "},"finish_reason":null}]}`+"\n\n", eventHead, clockMark, clockDigits, time.Since(m.begun))
}

func chunk(data []byte) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(data), data) }

// sentAt reads the time from an event.
func sentAt(event []byte) (time.Duration, bool) {
	_, after, found := bytes.Cut(event, []byte(clockMark))
	if !found || len(after) < clockDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(string(after[:clockDigits]), 10, 64)
	return time.Duration(n), err == nil
}

// leaving answers up to a point, and tells when the other side leaves.
func (m *Mock) leaving(conn net.Conn, kind string, e *expectation) error {
	event := string(chunk(m.event()))
	pieces := map[string][]string{answerGap: {streamHead + event}, answerPart: {streamHead + event, event[:len(event)/2]}}
	for i, piece := range pieces[kind] {
		time.Sleep(time.Duration(i) * partAfter)
		if _, err := io.WriteString(conn, piece); err != nil {
			return err
		}
	}
	if e == nil {
		return nil // it came twice, which is told elsewhere
	}
	e.reached <- time.Now()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		return errors.New("a byte more than the request has")
	}
	e.left <- time.Now()
	return nil
}
