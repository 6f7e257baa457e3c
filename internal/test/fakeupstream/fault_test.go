package fakeupstream_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// eventsOf reads so many events of a stream.
func eventsOf(t *testing.T, r *bufio.Reader, n int) string {
	t.Helper()
	var all strings.Builder
	for n > 0 {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", all.String(), err)
		}
		all.WriteString(line)
		if line == "\n" {
			n--
		}
	}
	return all.String()
}

func TestHoldHeaders(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	release := make(chan struct{})
	s.Script(fakeupstream.Answer{Content: "late", Fault: fakeupstream.Fault{HoldHeaders: release}})
	client, r := newClient(t), newPost(guard(t), t, s.URL()+"/v1/chat/completions", hello)
	status := make(chan int, 1)
	go func() {
		resp, err := client.Do(r)
		if err != nil {
			status <- -1
			return
		}
		_ = resp.Body.Close()
		status <- resp.StatusCode
	}()
	got, err := s.Wait(guard(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Status != 0 || len(status) != 0 {
		t.Errorf("an answer before the release: %+v", got[0])
	}
	close(release)
	if got := <-status; got != 200 {
		t.Errorf("status %d", got)
	}
}

func TestHoldInTheStream(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	release := make(chan struct{})
	s.Script(fakeupstream.Answer{Content: "0123456789", ChunkRunes: 1, Fault: fakeupstream.Fault{Hold: release, HoldAfter: 3}})
	stream := bufio.NewReader(chat(t, s, helloStream).Body)
	eventsOf(t, stream, 3)
	if n := stream.Buffered(); n != 0 {
		t.Fatalf("%d bytes beyond the hold", n)
	}
	if got := s.Requests()[0]; got.Phase != fakeupstream.PhaseBody || got.Status != 200 {
		t.Errorf("held in %+v", got)
	}
	release <- struct{}{}
	if rest := readAll(t, stream); !strings.HasSuffix(rest, "data: [DONE]\n\n") {
		t.Errorf("after the release: %q", rest)
	}
}

func TestHeadersComeBeforeAHold(t *testing.T) {
	for _, body := range []string{hello, helloStream} {
		s := start(t, fakeupstream.Options{})
		release := make(chan struct{})
		s.Script(fakeupstream.Answer{Content: "x", Fault: fakeupstream.Fault{Hold: release}})
		resp := chat(t, s, body) // returns at the headers
		close(release)
		if all := readAll(t, resp.Body); resp.StatusCode != 200 || len(all) == 0 {
			t.Errorf("%d %q", resp.StatusCode, all)
		}
	}
}

func TestDrip(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	drip := make(chan struct{})
	s.Script(fakeupstream.Answer{Content: "abc", ChunkRunes: 1, Fault: fakeupstream.Fault{Drip: drip}})
	stream := bufio.NewReader(chat(t, s, helloStream).Body)
	for _, want := range []string{`"role":"assistant"`, `"a"`, `"b"`} {
		drip <- struct{}{}
		if event := eventsOf(t, stream, 1); !strings.Contains(event, want) || stream.Buffered() != 0 {
			t.Fatalf("want one event with %s, got %q and %d bytes", want, event, stream.Buffered())
		}
	}
	close(drip)
	if rest := readAll(t, stream); !strings.HasSuffix(rest, "[DONE]\n\n") {
		t.Errorf("%q", rest)
	}
}

func TestBreaks(t *testing.T) {
	long := strings.Repeat("many words ", 40)
	for name, c := range map[string]struct {
		body  string
		fault fakeupstream.Fault
		want  error
		count func(got string) bool
	}{
		"stream closed": {helloStream, fakeupstream.Fault{Break: fakeupstream.BreakClose, BreakAfter: 2}, io.ErrUnexpectedEOF,
			func(got string) bool { return strings.Count(got, "data: ") == 2 && strings.HasSuffix(got, "\n\n") }},
		"stream closed at its end": {helloStream, fakeupstream.Fault{Break: fakeupstream.BreakClose, BreakAfter: 37 + 1 + 2}, io.ErrUnexpectedEOF,
			func(got string) bool { return strings.HasSuffix(got, "data: [DONE]\n\n") }},
		"stream closed at once": {helloStream, fakeupstream.Fault{Break: fakeupstream.BreakClose}, io.ErrUnexpectedEOF,
			func(got string) bool { return got == "" }},
		"stream reset": {helloStream, fakeupstream.Fault{Break: fakeupstream.BreakReset, BreakAfter: 2}, syscall.ECONNRESET,
			func(got string) bool { return strings.Count(got, "data: ") <= 2 }},
		"half a stream": {helloStream, fakeupstream.Fault{Break: fakeupstream.BreakEnd, BreakAfter: 2}, nil,
			func(got string) bool { return strings.Count(got, "data: ") == 2 && strings.HasSuffix(got, "\n\n") }},
		"half a whole": {hello, fakeupstream.Fault{Break: fakeupstream.BreakEnd, BreakAfter: 2}, io.ErrUnexpectedEOF,
			func(got string) bool { return len(got) == 128 }},
		"whole cut short": {hello, fakeupstream.Fault{Break: fakeupstream.BreakClose, BreakAfter: 2}, io.ErrUnexpectedEOF,
			func(got string) bool { return len(got) == 128 }},
		"whole reset": {hello, fakeupstream.Fault{Break: fakeupstream.BreakReset, BreakAfter: 1}, syscall.ECONNRESET,
			func(got string) bool { return len(got) <= 64 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, fakeupstream.Options{})
			s.Script(fakeupstream.Answer{Content: long, Fault: c.fault})
			resp := chat(t, s, c.body)
			got, err := io.ReadAll(resp.Body)
			if !errors.Is(err, c.want) || resp.StatusCode != 200 || !c.count(string(got)) {
				t.Errorf("%d, %v, %q", resp.StatusCode, err, got)
			}
			ended, err := s.WaitEnded(guard(t), 1)
			if err != nil || ended[0].Cancelled || ended[0].Phase != fakeupstream.PhaseDone {
				t.Errorf("recorded %+v, %v", ended, err)
			}
		})
	}
}

func TestBreakBeforeTheHeaders(t *testing.T) {
	for how, want := range map[fakeupstream.Break]error{
		fakeupstream.BreakClose: io.EOF, fakeupstream.BreakReset: syscall.ECONNRESET,
	} {
		s := start(t, fakeupstream.Options{})
		s.Script(fakeupstream.Answer{Fault: fakeupstream.Fault{Break: how, BreakAfter: -1}})
		resp, err := newClient(t).Do(newPost(guard(t), t, s.URL()+"/v1/chat/completions", hello))
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

func TestFaultsOfErrors(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	broken := fakeupstream.RateLimited("1")
	broken.Fault = fakeupstream.Fault{Break: fakeupstream.BreakClose, BreakAfter: 1}
	s.Script(broken)
	resp := chat(t, s, hello)
	got, err := io.ReadAll(resp.Body)
	if resp.StatusCode != 429 || !errors.Is(err, io.ErrUnexpectedEOF) || len(got) != 64 {
		t.Errorf("%d %v %q", resp.StatusCode, err, got)
	}
}

func TestCancelIsSeenInEveryPhase(t *testing.T) {
	never := make(chan struct{})
	for name, c := range map[string]struct {
		fault fakeupstream.Fault
		phase fakeupstream.Phase
	}{
		"before the headers": {fakeupstream.Fault{HoldHeaders: never}, fakeupstream.PhaseHeaders},
		"after the headers":  {fakeupstream.Fault{Hold: never}, fakeupstream.PhaseBody},
		"in the stream":      {fakeupstream.Fault{Hold: never, HoldAfter: 2}, fakeupstream.PhaseBody},
		"at its end":         {fakeupstream.Fault{Hold: never, HoldAfter: 4}, fakeupstream.PhaseBody},
		"while dripping":     {fakeupstream.Fault{Drip: never}, fakeupstream.PhaseBody},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, fakeupstream.Options{})
			s.Script(fakeupstream.Answer{Content: "x", Fault: c.fault})
			ctx, cancel := context.WithCancel(guard(t))
			defer cancel()
			client, r := newClient(t), newPost(ctx, t, s.URL()+"/v1/chat/completions", helloStream)
			left := make(chan struct{})
			go func() {
				defer close(left)
				resp, err := client.Do(r)
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}()
			waitForPhase(t, s, c.phase)
			cancel()
			noticed, err := s.WaitCancelled(guard(t), 1)
			if err != nil {
				t.Fatal("it was not noticed")
			}
			if got := noticed[0]; got.Index != 0 || got.Phase != c.phase || !got.Cancelled {
				t.Errorf("noticed %+v", got)
			}
			<-left
			ended, err := s.WaitEnded(guard(t), 1)
			if err != nil || !ended[0].Cancelled || ended[0].Phase != c.phase {
				t.Errorf("recorded %+v, %v", ended, err)
			}
			if all, err := s.WaitCancelled(guard(t), 1); err != nil || len(all) != 1 {
				t.Errorf("%v %v", all, err)
			}
		})
	}
}

// waitForPhase waits until the first request is in the phase.
func waitForPhase(t *testing.T, s *fakeupstream.Server, p fakeupstream.Phase) {
	t.Helper()
	if _, err := s.WaitFor(guard(t), func(all []fakeupstream.Request) bool { return len(all) > 0 && all[0].Phase == p }); err != nil {
		t.Fatal(err)
	}
}

func TestLeavingAfterTheEndIsNoCancel(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	const rounds = 50
	for i := range rounds {
		ctx, cancel := context.WithCancel(guard(t))
		resp, err := newClient(t).Do(newPost(ctx, t, s.URL()+"/v1/chat/completions", []string{hello, helloStream}[i%2]))
		if err != nil {
			t.Fatal(err)
		}
		body := bufio.NewReader(resp.Body)
		if i%2 == 0 {
			readAll(t, body)
		} else {
			eventsOf(t, body, 4) // role, text, finish, [DONE]; the end of the body is not awaited
		}
		cancel()
		_ = resp.Body.Close()
	}
	ended, err := s.WaitEnded(guard(t), rounds)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range ended {
		if r.Cancelled || r.Phase != fakeupstream.PhaseDone {
			t.Errorf("request %d: %s, cancelled %t", r.Index, r.Phase, r.Cancelled)
		}
	}
}

func TestCancelledUpload(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"model\"")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	got, err := s.WaitCancelled(guard(t), 1)
	if err != nil || got[0].Phase != fakeupstream.PhaseUpload || string(got[0].Body) != `{"model"` || got[0].Method != http.MethodPost {
		t.Errorf("%+v %v", got, err)
	}
}
