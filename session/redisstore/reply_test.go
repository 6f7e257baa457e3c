package redisstore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// answering starts a server that gives the same answer to every command except those that set up a connection.
func answering(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerAll(conn, answer)
		}
	}()
	return l.Addr().String()
}

func answerAll(conn net.Conn, answer string) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		reply := answer
		switch strings.ToLower(command) {
		case "hello":
			reply = "-ERR unknown command\r\n"
		case "client", "select", "auth":
			reply = "+OK\r\n"
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

func readCommand(in *bufio.Reader) (name string, err error) {
	var words int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &words); err != nil {
		return "", err
	}
	for n := range words {
		var size int
		if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
			return "", err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return "", err
		}
		if n == 0 {
			name = string(word[:size])
		}
	}
	return name, nil
}

// TestRepliesOfAnotherShape: no call panics, whatever the reply, and no call succeeds with an empty reply.
func TestRepliesOfAnotherShape(t *testing.T) {
	for _, answer := range []string{
		"*0\r\n", "*-1\r\n", "$-1\r\n", "*1\r\n*0\r\n", "*1\r\n$1\r\nx\r\n", "*1\r\n$-1\r\n", "*2\r\n:1\r\n:1\r\n", "*4\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n",
		":1\r\n", "+OK\r\n", "$0\r\n\r\n",
	} {
		for _, cluster := range []bool{false, true} {
			s := start(t, Options{Addrs: []string{answering(t, answer)}, Cluster: cluster, Timeout: 200 * time.Millisecond})
			for name, call := range everyCall(t, s) {
				err := session.Recover(call)
				var panicked *session.PanicError
				if errors.As(err, &panicked) {
					t.Errorf("%q, cluster %v: %s: %v", answer, cluster, name, err)
				}
				if answer == "*0\r\n" && err == nil && name != "mark" && name != "ping" && name != "request" && name != "answers" {
					t.Errorf("%s succeeded with an empty reply", name)
				}
			}
		}
	}
}

func everyCall(t *testing.T, s *sessions) map[string]func() error {
	t.Helper()
	ctx := t.Context()
	fork := twoEvents("f", 2)
	fork.Thread.Parent, fork.Thread.ForkAt = "t", 2
	return map[string]func() error{
		"secret":    func() error { return second(s.Secret(ctx, session.Secret("x"))) },
		"find":      func() error { return second(s.Find(ctx, []session.Hash{{1}, {2}}, "t", session.Hash{3})) },
		"find more": func() error { return second(s.Find(ctx, []session.Hash{{1}, {2}, {3}, {4}}, "")) },
		"hint":      func() error { return second(s.Find(ctx, nil, "t")) },
		"thread":    func() error { return second(s.Thread(ctx, "t")) },
		"append":    func() error { return s.Append(ctx, twoEvents("t", 0)) },
		"fork":      func() error { return s.Append(ctx, fork) },
		"condense":  func() error { return second(s.Condense(ctx, "t", session.Condensation{Summary: "s"})) },
		"summary":   func() error { return second(s.Summary(ctx, session.CondensationID{Thread: "t", Seq: 1})) },
		"events":    func() error { return second(s.Events(ctx, "t", 1, 10)) },
		"trace":     func() error { return second(s.Trace(ctx, []session.Hash{{1}, {2}})) },
		"mark": func() error {
			return s.Mark(ctx, session.Place{Thread: "t"}, session.Traces{Lasting: []session.Hash{{1}}})
		},
		"answers":  func() error { return second(s.Answers(ctx, "t")) },
		"session":  func() error { return second(s.Session(ctx, "s")) },
		"sessions": func() error { return second(s.Sessions(ctx, session.SessionQuery{Limit: 1})) },
		"forget":   func() error { return s.Forget(ctx, "s") },
		"request":  func() error { return s.Request(ctx, "t", time.Now()) },
		"lock":     func() error { return second(s.Lock(ctx, "t", time.Second)) },
		"ping":     func() error { return s.Ping(ctx) },
	}
}
