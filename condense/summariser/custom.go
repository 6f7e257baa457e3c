package summariser

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/platform"
)

// Service is a condense.Summariser for condense.NewCustom that calls an HTTP service: the question is the body of a POST, and the answer
// is the body of a response with status 200. Safe for concurrent use.
type Service struct {
	Client  *http.Client // nil: http.DefaultClient
	URL     string
	Key     string        // sent as a bearer token, if set
	Timeout time.Duration // of a call; 0: DefaultTimeout
}

var _ condense.Summariser = Service{}

func (s Service) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	call, cancel := context.WithTimeout(ctx, cmp.Or(s.Timeout, DefaultTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(call, http.MethodPost, s.URL, strings.NewReader(r.User))
	if err != nil {
		return condense.Reply{}, callError(ctx, err, s.Key)
	}
	sender := Caller{Client: s.Client}.newSender(condense.Endpoint{APIKey: s.Key}, func() {})
	resp, err := sender.do(req)
	if err != nil {
		return condense.Reply{}, callError(ctx, err, s.Key)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return condense.Reply{}, &condense.CallError{Kind: failure(resp.StatusCode), Status: resp.StatusCode}
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		if call.Err() != nil && ctx.Err() == nil {
			return condense.Reply{}, &condense.CallError{Kind: condense.FailureTimeout, Err: context.DeadlineExceeded}
		}
		return condense.Reply{}, callError(ctx, err, s.Key)
	}
	return condense.Reply{Text: string(text)}, nil
}

// Program is a condense.Summariser for condense.NewCustom that runs a program for each call: the question is its standard input, the
// answer its standard output. The program runs with the variables of Environment. It is killed, together with its children, after
// the timeout or if its answer is too long. Safe for concurrent use.
type Program struct {
	Command []string      // path or name, and arguments
	Timeout time.Duration // of a call; 0: DefaultTimeout
}

var _ condense.Summariser = Program{}

// waitDelay is how long a program's children may keep its output open after it has exited.
const waitDelay = time.Second

func (p Program) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	call, cancel := context.WithTimeout(ctx, cmp.Or(p.Timeout, DefaultTimeout))
	defer cancel()
	out := &boundedBuffer{left: maxResponse}
	cmd := exec.CommandContext(call, p.Command[0], p.Command[1:]...) //nolint:gosec // the command is configured
	cmd.Stdin = strings.NewReader(r.User)
	cmd.Stdout = out
	cmd.Env = Environment()
	cmd.WaitDelay = waitDelay
	platform.KillWithChildren(cmd)
	err := cmd.Run()
	exit, exited := errors.AsType[*exec.ExitError](err)
	kind := condense.FailureUnreachable
	switch {
	case ctx.Err() != nil:
		kind, err = contextFailure(ctx), ctx.Err()
	case call.Err() != nil:
		kind, err = condense.FailureTimeout, call.Err()
	case out.left < 0:
		kind, err = condense.FailureMalformed, errResponseSize
	case exited:
		kind, err = condense.FailureServer, errors.New(exit.String())
	case err == nil:
		return condense.Reply{Text: out.text.String()}, nil
	}
	return condense.Reply{}, &condense.CallError{Kind: kind, Err: err}
}

// Environment returns the variables of our environment that a program needs to run, and none that may hold secrets.
func Environment() []string {
	env := []string{} // not nil, with which exec would pass on everything
	for _, name := range [...]string{"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "SYSTEMROOT", "USERPROFILE", "TEMP"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// boundedBuffer is a buffer for a limited number of bytes. Exceeding it is an error, which ends the program that writes.
type boundedBuffer struct {
	text bytes.Buffer
	left int64
}

func (b *boundedBuffer) Write(text []byte) (int, error) {
	b.left -= int64(len(text))
	if b.left < 0 {
		return 0, errResponseSize
	}
	return b.text.Write(text) // always nil
}
