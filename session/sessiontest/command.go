package sessiontest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Command sends one command to a Redis server on a connection of its own and gives its answer: a status, a number or a
// string, nested ones as lines.
func Command(addr string, args ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	request := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		request = fmt.Appendf(request, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := conn.Write(request); err != nil {
		return "", err
	}
	return reply(bufio.NewReader(conn))
}

func reply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	kind, rest := line[:1], line[1:]
	switch kind {
	case "-":
		return "", replyError(rest)
	case "$":
		return bulk(r, rest)
	case "*":
		return array(r, rest)
	}
	return rest, nil
}

func bulk(r *bufio.Reader, size string) (string, error) {
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 {
		return "", err
	}
	b := make([]byte, n+2)
	_, err = io.ReadFull(r, b)
	return string(b[:n]), err
}

func array(r *bufio.Reader, size string) (string, error) {
	n, err := strconv.Atoi(size)
	if err != nil {
		return "", err
	}
	var lines []string
	for range n {
		line, err := reply(r)
		if err != nil {
			return "", err
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}

func isReply(err error, prefix string) bool {
	var reply replyError
	return errors.As(err, &reply) && strings.HasPrefix(string(reply), prefix)
}
