package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// client is one connection of an agent. It is for one goroutine.
type client struct {
	conn     net.Conn
	r        *bufio.Reader
	response fasthttp.Response
}

// call is a request to be made.
type call struct {
	Target *Target
	ID     uint64 // that the mock knows it by
	Answer string // what the mock is asked for, empty: a whole answer
	Body   []byte
	path   string // empty: that of Chat Completions
}

// answer is a response. It is valid until the client's next call.
type answer struct {
	*fasthttp.Response
	took time.Duration
}

// has reports whether there is a header.
func (a *answer) has(header string) bool { return len(a.Header.Peek(header)) > 0 }

const (
	headerThread = "X-Dewpoint-Thread"

	patience   = 60 * time.Second // for one answer; only something broken takes it
	bufferSize = 64 << 10
	leanBuffer = 4 << 10 // for connections by the thousand
)

func dial(ctx context.Context, addr string, buffer int) (*client, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return &client{conn: conn, r: bufio.NewReaderSize(conn, buffer)}, nil
}

func (c *client) close() { c.conn.Close() }

// do makes a call and reads the answer to its end.
func (c *client) do(q *call) (*answer, error) {
	begun := time.Now()
	if err := c.send(q); err != nil {
		return nil, err
	}
	if err := c.response.Read(c.r); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return &answer{&c.response, time.Since(begun)}, nil
}

// open makes a call, and gives the answer's status, and its body as it comes.
func (c *client) open(q *call) (int, *bufio.Reader, error) {
	if err := c.send(q); err != nil {
		return 0, nil, err
	}
	c.response.StreamBody = true
	if err := c.response.Read(c.r); err != nil {
		return 0, nil, fmt.Errorf("read answer: %w", err)
	}
	return c.response.StatusCode(), bufio.NewReaderSize(c.response.BodyStream(), bufferSize), nil
}

// send writes a request, without waiting for its answer: what the usual SDK sends, and what the mock is to know.
func (c *client) send(q *call) error {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	head := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json\r\nUser-Agent: OpenAI/Python 1.99.0\r\n"+
		"X-Stainless-Lang: python\r\nX-Stainless-Package-Version: 1.99.0\r\nX-Stainless-Os: Linux\r\nX-Stainless-Retry-Count: 0\r\n"+
		"X-Stainless-Read-Timeout: 600\r\nAuthorization: Bearer sk-bench\r\n%s: %d\r\nContent-Length: %d\r\n", cmp.Or(q.path, chatPath), q.Target.Addr,
		headerID, q.ID, len(q.Body))
	if q.Answer != "" {
		head = fmt.Appendf(head, "%s: %s\r\n", headerAnswer, q.Answer)
	}
	parts := net.Buffers{append(head, "\r\n"...), q.Body}
	if _, err := parts.WriteTo(c.conn); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// awaitEvent reads until an event has come.
func (c *client) awaitEvent() error {
	for seen := []byte(nil); !bytes.Contains(seen, []byte("\n\n")) || !bytes.Contains(seen, []byte(clockMark)); {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		seen = append(seen, line...)
	}
	return nil
}
