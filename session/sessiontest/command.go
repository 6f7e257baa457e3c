package sessiontest

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/proto"
)

// Command sends one command to a Redis server over a new connection. It returns the reply as text, with the elements of an
// array as lines.
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
	reply, err := proto.Parse(raw)
	if refused, is := reply.(error); is {
		return "", fmt.Errorf("redis: %w", refused)
	}
	return lines(reply), err
}

func lines(reply any) string {
	switch reply := reply.(type) {
	case []any:
		all := make([]string, len(reply))
		for i, element := range reply {
			all[i] = lines(element)
		}
		return strings.Join(all, "\n")
	case nil, error:
		return ""
	}
	return strings.TrimPrefix(fmt.Sprint(reply), "$-1\r\n") // a null string is given as this
}
