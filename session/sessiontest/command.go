package sessiontest

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/proto"
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
	raw, err := proto.NewClient(conn).Do(args...)
	if err != nil {
		return "", err
	}
	answer, err := proto.Parse(raw)
	if refused, is := answer.(error); is {
		err = fmt.Errorf("redis: %w", refused)
	}
	return lines(answer), err
}

func lines(answer any) string {
	switch answer := answer.(type) {
	case []any:
		all := make([]string, len(answer))
		for i, a := range answer {
			all[i] = lines(a)
		}
		return strings.Join(all, "\n")
	case nil, error:
		return ""
	}
	return strings.TrimPrefix(fmt.Sprint(answer), "$-1\r\n") // of a string that is not there
}
