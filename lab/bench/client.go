package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// client is one connection of an agent. It speaks just enough HTTP/1.1 to cost next to nothing. It is for one goroutine.
type client struct {
	conn   net.Conn
	r      *bufio.Reader
	head   []byte
	answer answer
}

// call is a request to be made.
type call struct {
	Target *Target
	ID     uint64 // that the mock knows it by
	Answer string // what the mock is asked for, empty: a whole answer
	Body   Body
	path   string // empty: the target's
}

// answer is a response. It is valid until the client's next call.
type answer struct {
	Status     int
	Thread     string // X-Dewpoint-Thread
	RetryAfter string
	Body       []byte
	Took       time.Duration
	length     int // -1: in chunks
}

const patience = 60 * time.Second // for one answer; only something broken takes it

func dial(ctx context.Context, addr string) (*client, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return newClient(conn, 64<<10), nil
}

func newClient(conn net.Conn, buffer int) *client {
	return &client{conn: conn, r: bufio.NewReaderSize(conn, buffer)}
}

func (c *client) close() { c.conn.Close() }

// do makes a call and reads the answer to its end. each sees the answer's pieces as they come; nil: not needed.
func (c *client) do(call *call, each func([]byte)) (*answer, error) {
	c.head = appendHead(c.head[:0], call)
	parts := net.Buffers{c.head, call.Body[0], call.Body[1], call.Body[2]}
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, fmt.Errorf("call: %w", err)
	}
	begun := time.Now()
	if _, err := parts.WriteTo(c.conn); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	if err := c.readHead(); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	err := c.readBody(func(piece []byte) {
		c.answer.Body = append(c.answer.Body, piece...)
		if each != nil {
			each(piece)
			c.answer.Body = c.answer.Body[:0]
		}
	})
	c.answer.Took = time.Since(begun)
	if err != nil {
		return nil, fmt.Errorf("read answer's body: %w", err)
	}
	return &c.answer, nil
}

// appendHead writes a request's head: what the usual SDK sends, and what the mock is to know.
func appendHead(b []byte, c *call) []byte {
	b = append(b, "POST "...)
	b = append(b, cmp.Or(c.path, c.Target.path)...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, c.Target.Addr...)
	b = append(b, "\r\nContent-Type: application/json\r\nAccept: application/json\r\nUser-Agent: OpenAI/Python 1.99.0\r\n"+
		"X-Stainless-Lang: python\r\nX-Stainless-Package-Version: 1.99.0\r\nX-Stainless-Os: Linux\r\nX-Stainless-Retry-Count: 0\r\n"+
		"X-Stainless-Read-Timeout: 600\r\nAuthorization: Bearer sk-bench\r\n"...)
	b = append(b, headerID+": "...)
	b = strconv.AppendUint(b, c.ID, 10)
	if c.Answer != "" {
		b = append(b, "\r\n"+headerAnswer+": "...)
		b = append(b, c.Answer...)
	}
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(c.Body.Len()), 10)
	return append(b, "\r\n\r\n"...)
}

// readHead reads an answer's head into c.answer.
func (c *client) readHead() error {
	c.answer = answer{Body: c.answer.Body[:0]}
	line, err := c.line()
	if err != nil {
		return err
	}
	if len(line) < 12 {
		return fmt.Errorf("malformed status line %q", line)
	}
	if c.answer.Status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return fmt.Errorf("malformed status line %q", line)
	}
	c.answer.length = -1
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if err := c.answer.header(name, bytes.TrimSpace(value)); err != nil {
			return err
		}
	}
}

func (a *answer) header(name, value []byte) (err error) {
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		a.length, err = strconv.Atoi(string(value))
	case bytes.EqualFold(name, []byte("X-Dewpoint-Thread")):
		a.Thread = string(value)
	case bytes.EqualFold(name, []byte("Retry-After")):
		a.RetryAfter = string(value)
	}
	return err
}

// line reads a line without its end. It is valid until the next read.
func (c *client) line() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

func (c *client) readBody(each func([]byte)) error {
	if c.answer.length >= 0 {
		return readPieces(c.r, c.answer.length, each)
	}
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return fmt.Errorf("malformed chunk %q", line)
		}
		if err := readPieces(c.r, int(size), each); err != nil {
			return err
		}
		if line, err = c.line(); err != nil || len(line) > 0 {
			return errors.Join(err, errTrailer(line))
		}
		if size == 0 {
			return nil
		}
	}
}

func errTrailer(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	return fmt.Errorf("malformed end of a chunk %q", line)
}

// readPieces hands out n bytes, as they come.
func readPieces(r *bufio.Reader, n int, each func([]byte)) error {
	for n > 0 {
		if _, err := r.Peek(1); err != nil {
			return err
		}
		piece, err := r.Peek(min(n, r.Buffered()))
		if err != nil {
			return err
		}
		each(piece)
		if _, err := r.Discard(len(piece)); err != nil {
			return err
		}
		n -= len(piece)
	}
	return nil
}
