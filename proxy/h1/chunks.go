package h1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// errChunk ends a body whose chunks are malformed.
var errChunk = errors.New("malformed chunk")

// chunks reads a body in chunks (RFC 9112, section 7.1). Unlike net/http's reader it gives what has come of a chunk while
// the rest is on its way: an event of a stream is not to wait for the end of the next one. Trailers are dropped.
type chunks struct {
	in    *bufio.Reader
	left  uint64 // of the current chunk
	inner bool   // a chunk has begun: its end is to be read before the next
	err   error  // sticky
}

// maxLine bounds a chunk's line with its extensions, and maxTrailer the trailers, in bytes.
const (
	maxLine    = 4 << 10
	maxTrailer = 16 << 10
)

// Read implements io.Reader. It waits for the first byte only.
func (c *chunks) Read(p []byte) (n int, err error) {
	for n < len(p) && c.err == nil {
		if c.left == 0 {
			if n > 0 && !c.ready() {
				return n, nil
			}
			if c.err = c.begin(); c.err != nil {
				break
			}
		}
		if n > 0 && c.in.Buffered() == 0 {
			return n, nil
		}
		got, err := c.in.Read(p[n:min(uint64(len(p)), uint64(n)+c.left)])
		n, c.left, c.err = n+got, c.left-uint64(got), cut(err) //nolint:gosec // got is not negative
	}
	if n > 0 {
		return n, nil
	}
	return 0, c.err
}

// ready reports whether the next chunk can be begun without waiting.
func (c *chunks) ready() bool {
	buffered, _ := c.in.Peek(c.in.Buffered())
	if c.inner {
		buffered = buffered[min(2, len(buffered)):]
	}
	return bytes.IndexByte(buffered, '\n') >= 0 && buffered[0] != '0' // the end may have trailers
}

// begin reads up to a chunk's first byte; io.EOF after the last chunk.
func (c *chunks) begin() error {
	if c.inner {
		var end [2]byte
		if _, err := io.ReadFull(c.in, end[:]); err != nil {
			return cut(err)
		}
		if end != [2]byte{'\r', '\n'} {
			return errChunk
		}
	}
	line, err := c.line(maxLine)
	if err != nil {
		return err
	}
	if c.left, err = chunkSize(line); err != nil {
		return err
	}
	c.inner = true
	if c.left == 0 {
		return c.end()
	}
	return nil
}

// end reads the trailers.
func (c *chunks) end() error {
	for left := maxTrailer; ; {
		line, err := c.line(left)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return io.EOF
		}
		left -= len(line)
	}
}

// line reads a line of so many bytes at most.
func (c *chunks) line(most int) ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull), err == nil && len(line) > most:
		return nil, fmt.Errorf("%w: its line is too long", errChunk)
	case err != nil:
		return nil, cut(err)
	}
	line, whole := bytes.CutSuffix(line, []byte("\r\n"))
	if !whole || bytes.IndexByte(line, '\r') >= 0 {
		return nil, errChunk
	}
	return line, nil
}

// chunkSize reads the number that a chunk's line begins with.
func chunkSize(line []byte) (size uint64, err error) {
	digits, _, _ := bytes.Cut(line, []byte{';'})
	digits = bytes.TrimRight(digits, " \t")
	if len(digits) == 0 || len(digits) > 15 {
		return 0, errChunk
	}
	for _, d := range digits {
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'a' <= d|0x20 && d|0x20 <= 'f':
			d = d | 0x20 - 'a' + 10
		default:
			return 0, errChunk
		}
		size = size<<4 | uint64(d)
	}
	return size, nil
}

// cut is how a connection's end reads before the body's.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
