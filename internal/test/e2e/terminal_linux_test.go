package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	running "github.com/dewpoint-proxy/dewpoint/internal/test/process"
)

// terminalSession is a program at a terminal, and what it has written there.
type terminalSession struct {
	t       *testing.T
	keys    *os.File
	text    chan []byte
	seen    bytes.Buffer
	command *exec.Cmd
}

// atTerminal runs the binary at a terminal of n columns. home is its user's home folder.
func atTerminal(t *testing.T, n uint16, home string, args ...string) *terminalSession {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	ok(t, err)
	t.Cleanup(func() { keys.Close() })
	ok(t, unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	ok(t, err)
	ok(t, unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: n}))
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	ok(t, err)
	defer screen.Close()
	s := &terminalSession{t: t, keys: keys, text: make(chan []byte, 1024), command: exec.Command(built(t), args...)}
	s.command.Dir, s.command.Stdin, s.command.Stdout, s.command.Stderr = home, screen, screen, screen
	s.command.Env = append(running.Environment(), "HOME="+home, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "TERM=xterm", "NO_COLOR=1", "OPENAI_API_KEY=sk-secret")
	s.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	ok(t, s.command.Start())
	t.Cleanup(func() { _ = s.command.Process.Kill() })
	go func() {
		defer close(s.text)
		for {
			piece := make([]byte, 4096)
			n, err := keys.Read(piece)
			if err != nil { // the program has ended
				return
			}
			s.text <- piece[:n]
		}
	}()
	return s
}

// await waits until the screen shows a text, and returns what it found.
func (s *terminalSession) await(pattern string) []string {
	s.t.Helper()
	for deadline := time.After(patience); ; {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(s.screen()); m != nil {
			return m
		}
		select {
		case piece, more := <-s.text:
			s.seen.Write(piece)
			if !more && regexp.MustCompile(pattern).FindStringSubmatch(s.screen()) == nil {
				s.t.Fatalf("the program has ended, and the screen has no %q:\n%s", pattern, s.screen())
			}
		case <-deadline:
			s.t.Fatalf("the screen has no %q:\n%s", pattern, s.screen())
		}
	}
}

// screen returns what was written, without the codes that begin a line anew.
func (s *terminalSession) screen() string {
	return strings.NewReplacer("\r\x1b[K", "", "\r", "").Replace(s.seen.String())
}

func (s *terminalSession) send(text string) {
	s.t.Helper()
	_, err := s.keys.WriteString(text)
	ok(s.t, err)
}

// wait waits for the program's end and returns its exit code.
func (s *terminalSession) wait() int {
	for piece := range s.text {
		s.seen.Write(piece)
	}
	_ = s.command.Wait()
	return s.command.ProcessState.ExitCode()
}

// TestAPersonAtATerminal: init writes a configuration, which serve reads; there are a banner, a line for each request, and the total.
func TestAPersonAtATerminal(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if bytes.Contains(body, []byte("busy")) {
			w.Header().Set("Retry-After", "12")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error": {"message": "slow down"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"choices": [{"message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}],
			"usage": {"prompt_tokens": 1200, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 600}}}`)
	}))
	defer upstream.Close()
	home := t.TempDir()

	asked := atTerminal(t, 100, home, "init")
	asked.await(`1\. Where do requests go\?`)
	asked.send("1\n1\n\ny\n")
	file := filepath.Join(home, ".config", "dewpoint", "config.yaml")
	asked.await(regexp.QuoteMeta("Start it with 'dewpoint'"))
	if code := asked.wait(); code != 0 || strings.Contains(asked.screen(), "sk-secret") {
		t.Fatalf("exit code %d:\n%s", code, asked.screen())
	}

	s := atTerminal(t, 80, home, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", upstream.URL+"/v1")
	addr := s.await(`agents +http://(\S+)`)[1]
	s.await(`state +~/\.local/state/dewpoint/state\.db \(0 sessions\)\n +condense +by price, with excerpts; no model is called`)
	s.await(regexp.QuoteMeta("config    ~/.config/dewpoint/config.yaml"))
	post := func(model string) {
		t.Helper()
		resp, err := http.Post("http://"+addr+"/v1/chat/completions", "application/json",
			strings.NewReader(`{"model": "`+model+`", "messages": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "How are you?"}]}`))
		ok(t, err)
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		ok(t, err)
	}
	post("gpt-4o")
	s.await(`\n\d\d:\d\d:\d\d  gpt-4o            step 2    1\.2k +cached 50% +new session\n`)
	post(`busy\u001b[2J`)
	s.await(`\n\d\d:\d\d:\d\d  busy\?\[2J          step 2\s+upstream has had too many requests \(429\), retry after 12 s: passed on\n`)
	s.send("\x03")
	s.await(`\n1 session, 1 step, 0 condensations\. Spent \$0\.002, with nothing saved\. 1 request\n?\s*failed\.\n`)
	if code := s.wait(); code != 0 || strings.Contains(s.screen(), "\x1b") || strings.Contains(s.screen(), `{"level"`) {
		t.Errorf("exit code %d:\n%q", code, s.screen())
	}

	again := atTerminal(t, 80, home, "init")
	again.await(`1\. Where`)
	again.send("\n\n\n\n")
	again.await(regexp.QuoteMeta(file) + ` exists\. Replace it with this\? \[y/N\]`)
	again.await(`Nothing was written\.`)
}

// TestFormatsOfTheLog: a pipe gets JSON, and lines for people only if they are asked for.
func TestFormatsOfTheLog(t *testing.T) {
	t.Parallel()
	p := serve(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "json")
	p.terminate()
	if code := p.wait(); code != 0 || strings.Contains(p.log.String(), "Dewpoint ") {
		t.Errorf("exit code %d:\n%s", code, p.log)
	}
	folder := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, built(t), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "console")
	command.Env = append(running.Environment(), "XDG_STATE_HOME="+folder, "XDG_CONFIG_HOME="+folder)
	pipe, err := command.StderrPipe()
	ok(t, err)
	ok(t, command.Start())
	var text strings.Builder
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "  condense") {
			ok(t, command.Process.Signal(os.Interrupt))
		}
	}
	err = command.Wait()
	if got := text.String(); err != nil || strings.Contains(got, "\x1b") || strings.Contains(got, "{") || !strings.HasSuffix(got, "No requests.\n") {
		t.Errorf("%v: %q", err, got)
	}
}
