package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What a request tells the mock: its id, and the answer that it wants.
const (
	headerID     = "X-Bench-Id"
	headerAnswer = "X-Bench-Answer"
)

// Mock is the upstream that all targets forward to: it reads a request, answers at once, and then compares what it read
// with what was expected.
type Mock struct {
	Expected *expectations

	listener net.Listener
	buffers  buffers
	begun    time.Time      // the zero of the times in streams
	reached  chan time.Time // when a request arrived that waits for its client to leave
	left     chan time.Time // when it was seen to leave
	mu       sync.Mutex
	conns    map[net.Conn]bool
	held     net.Conn // that waits for its client to leave
	closed   bool
	serving  sync.WaitGroup
}

// StartMock serves on a free port of the loopback.
func StartMock() (*Mock, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start mock: %w", err)
	}
	m := &Mock{
		Expected: newExpectations(), listener: l, conns: map[net.Conn]bool{}, begun: time.Now(),
		reached: make(chan time.Time, 1), left: make(chan time.Time, 1),
	}
	m.serving.Go(m.accept)
	return m, nil
}

// Addr is where the mock listens.
func (m *Mock) Addr() string { return m.listener.Addr().String() }

// Close ends all connections and waits for them.
func (m *Mock) Close() {
	m.listener.Close()
	m.mu.Lock()
	m.closed = true
	for c := range m.conns {
		c.Close()
	}
	m.mu.Unlock()
	m.serving.Wait()
}

func (m *Mock) accept() {
	for {
		conn, err := m.listener.Accept()
		if err != nil {
			return // closed
		}
		m.mu.Lock()
		if m.closed {
			conn.Close()
		} else {
			m.conns[conn] = true
			m.serving.Go(func() { m.serve(conn) })
		}
		m.mu.Unlock()
	}
}

func (m *Mock) serve(conn net.Conn) {
	defer func() {
		conn.Close()
		m.mu.Lock()
		delete(m.conns, conn)
		m.mu.Unlock()
	}()
	x := exchange{mock: m, conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
	for x.one() == nil {
	}
}

// exchange is a request and its answer, one after another on a connection.
type exchange struct {
	mock   *Mock
	conn   net.Conn
	r      *bufio.Reader
	id     uint64
	want   string // the answer
	length int    // -1: in chunks
	out    []byte
}

// one serves one request.
func (x *exchange) one() error {
	if err := x.readHead(); err != nil {
		return err
	}
	body, err := x.readBody()
	if err != nil {
		return err
	}
	first := x.mock.Expected.arrived(x.id)
	err = x.answer(len(body))
	if first != nil { // not while a request waits
		x.mock.Expected.came(first, body)
	}
	x.mock.buffers.put(body)
	return err
}

func (x *exchange) readHead() error {
	x.id, x.want, x.length = 0, "", 0
	for first := true; ; first = false {
		line, err := x.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 && !first {
			return nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if err := x.header(name, bytes.TrimSpace(value)); err != nil {
			return err
		}
	}
}

func (x *exchange) header(name, value []byte) (err error) {
	switch {
	case bytes.EqualFold(name, []byte(headerID)):
		x.id, err = strconv.ParseUint(string(value), 10, 64)
	case bytes.EqualFold(name, []byte(headerAnswer)):
		x.want = string(value)
	case bytes.EqualFold(name, []byte("Content-Length")):
		x.length, err = strconv.Atoi(string(value))
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		x.length = -1
	}
	return err
}

// readBody reads a body into a buffer that is to be put back.
func (x *exchange) readBody() ([]byte, error) {
	if x.length >= 0 {
		body := x.mock.buffers.get(x.length)[:x.length]
		_, err := io.ReadFull(x.r, body)
		return body, err
	}
	body := x.mock.buffers.get(64 << 10)
	for {
		line, err := x.r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		size, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return nil, fmt.Errorf("malformed chunk: %w", err)
		}
		at := len(body)
		body = append(body, make([]byte, size)...)
		if _, err := io.ReadFull(x.r, body[at:]); err != nil {
			return nil, err
		}
		if _, err := x.r.Discard(len("\r\n")); err != nil {
			return nil, err
		}
		if size == 0 {
			return body, nil
		}
	}
}

// answer gives what was asked for. received is how many bytes the request's body had.
func (x *exchange) answer(received int) error {
	kind, rest, _ := strings.Cut(x.want, ",")
	switch {
	case kind == "":
		return x.whole(received)
	case kind == "stream":
		return x.stream(rest, received)
	case kind == string(Messages), kind == string(Responses):
		return x.turn(API(kind), received)
	}
	return x.leaving(kind)
}

// whole answers with a call, as an agent's model does.
func (x *exchange) whole(received int) error {
	x.out = append(x.out[:0], `{"id":"chatcmpl-`...)
	x.out = strconv.AppendUint(x.out, x.id, 10)
	x.out = append(x.out, `","object":"chat.completion","created":1767225600,"model":"`+Model+`","choices":[{"index":0,"message":{"role":"assistant",`+
		`"content":null,"tool_calls":[{"id":"call_`...)
	x.out = strconv.AppendUint(x.out, mix(x.id), 10)
	x.out = append(x.out, `","type":"function","function":{"name":"bash","arguments":"{\"command\": \"go test ./...\", \"timeout\": 60}"}}]},`+
		`"finish_reason":"tool_calls"}],`...)
	x.out = append(appendUsage(x.out, received), '}')
	return x.write(x.out)
}

func appendUsage(b []byte, received int) []byte {
	b = append(b, `"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(received/bytesPerToken+1), 10)
	b = append(b, `,"completion_tokens":24,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(received/bytesPerToken+25), 10)
	return append(b, '}')
}

// bytesPerToken is about what the bodies have, so that the mock's usage is plausible.
const bytesPerToken = 3

// write writes a whole answer.
func (x *exchange) write(body []byte) error {
	head := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: req_bench\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	_, err := (&net.Buffers{[]byte(head), body}).WriteTo(x.conn)
	return err
}

// buffers hands out body buffers.
type buffers struct {
	mu   sync.Mutex
	free [][]byte
}

func (b *buffers) get(n int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.free) - 1; i >= 0; i-- {
		if got := b.free[i]; cap(got) >= n {
			b.free = append(b.free[:i], b.free[i+1:]...)
			return got[:0]
		}
	}
	return make([]byte, 0, n+n/8)
}

// buffersKept bounds what stays for the next bodies.
const buffersKept = 128

func (b *buffers) put(got []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.free) < buffersKept {
		b.free = append(b.free, got)
	}
}
