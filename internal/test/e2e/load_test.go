package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// load is a group of agents that send requests without pause until the server is gone, or until they are stopped.
type load struct {
	url      string
	agents   []*talker
	exchange chan struct{} // one value per exchange, while someone reads them
	stop     chan struct{}
	ending   atomic.Bool // the proxy was asked to stop
	work     sync.WaitGroup
}

// talker is one agent, whose conversation grows by one exchange at a time.
type talker struct {
	name   string
	client http.Client
	kept   bool // it keeps its connection
	stream bool

	messages []json.RawMessage // the messages that the proxy has received
	thread   string
	answers  int
	told     int  // answers that asked it to close the connection
	toldLast bool // the last one did
	err      error
}

// newLoad prepares agents: half of them keep their connections, half of them stream.
func newLoad(url string, agents int) *load {
	l := &load{url: url, exchange: make(chan struct{}), stop: make(chan struct{})}
	for n := range agents {
		l.agents = append(l.agents, &talker{
			name: fmt.Sprint("agent ", n), kept: n%2 != 0, stream: n/2%2 == 0,
			client: http.Client{Transport: &http.Transport{DisableKeepAlives: n%2 == 0}},
		})
	}
	return l
}

func (l *load) begin(t testing.TB) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(func() { cancel(); l.work.Wait() })
	for _, a := range l.agents {
		l.work.Go(func() { l.talk(ctx, a) })
	}
}

// after waits for a number of exchanges.
func (l *load) after(t testing.TB, n int) {
	t.Helper()
	for range n {
		select {
		case <-l.exchange:
		case <-t.Context().Done():
			t.Fatal("too few exchanges")
		}
	}
	go func() { // so that the other agents do not block
		for range l.exchange {
		}
	}()
}

// over waits until every agent has ended, and fails the test for each request that was begun but not answered.
func (l *load) over(t testing.TB) {
	t.Helper()
	l.work.Wait()
	close(l.exchange)
	for _, a := range l.agents {
		if a.err != nil {
			t.Errorf("%s, after %d answers: %v", a.name, a.answers, a.err)
		}
	}
}

func (l *load) talk(ctx context.Context, a *talker) {
	defer a.client.CloseIdleConnections()
	for {
		err := a.exchange(ctx, l.url)
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errNotTaken) && !a.kept && l.ending.Load() {
			return // it was not begun
		}
		if err != nil {
			a.err = err
			return
		}
		if a.kept && a.toldLast && l.ending.Load() {
			return // it would have to reconnect
		}
		select {
		case l.exchange <- struct{}{}:
		case <-l.stop:
			return
		case <-ctx.Done():
			a.err = ctx.Err()
			return
		}
	}
}

// errNotTaken means that the connection was reset before an answer, as is a connection made at the moment when the port closes.
var errNotTaken = errors.New("connection reset")

// exchange sends the next question and reads the whole answer.
func (a *talker) exchange(ctx context.Context, url string) error {
	next := append(a.messages[:len(a.messages):len(a.messages)], encode(map[string]string{
		"role": "user", "content": fmt.Sprintf("%s asks question %d", a.name, a.answers),
	}))
	text := encode(map[string]any{"model": judge.Model, "messages": next, "stream": a.stream})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/chat/completions", bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed) { // by net/http, on a reset
		return fmt.Errorf("%w: %w", errNotTaken, err)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("the answer broke: %w", err)
	}
	if resp.StatusCode != http.StatusOK || a.stream && !strings.HasSuffix(string(answer), "data: [DONE]\n\n") {
		return fmt.Errorf("%s: %.200s", resp.Status, answer)
	}
	return a.learn(next, resp)
}

func (a *talker) learn(sent []json.RawMessage, resp *http.Response) error {
	thread := resp.Header.Get("X-Dewpoint-Thread")
	if a.thread != "" && thread != a.thread {
		return fmt.Errorf("thread %q, it began in %q", thread, a.thread)
	}
	a.messages, a.thread = sent, thread
	a.answers++
	if a.toldLast = resp.Close; resp.Close {
		a.told++
	}
	a.messages = append(a.messages, encode(map[string]string{"role": "assistant", "content": loadAnswer}))
	return nil
}

// loadAnswer is the upstream's answer to a load.
const loadAnswer = "An answer of several words, streamed in pieces."

// logged checks that a store's file has every message that the agents sent.
func (l *load) logged(t testing.TB, path string) {
	t.Helper()
	store, err := boltstore.Open(boltstore.Options{Path: path, Content: true})
	ok(t, err)
	defer store.Close()
	for _, a := range l.agents {
		if a.answers > 0 {
			checkLog(t, store, session.ThreadID(a.thread), replay.Run{Messages: a.messages[:len(a.messages)-1]})
		}
	}
}
