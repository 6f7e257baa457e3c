package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// writer writes an answer of an upstream.
type writer struct{ *bufio.Writer }

func (w writer) event(format string, a ...any) { fmt.Fprintf(w, "data: "+format+"\n\n", a...) }

// delta writes a chunk of a chat completion.
func (w writer) delta(delta string) {
	w.event(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":%s}]}`, delta)
}

func (w writer) finish(reason string) {
	w.event(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
	w.event("[DONE]")
}

// call writes a call whose arguments are a list of numbers of n bytes.
func (w writer) call(tool string, index, n int) {
	w.delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"call_%d","type":"function","function":{"name":%q,"arguments":"{\"event\":\""}}]}`, index, index, tool))
	piece := strings.Repeat("1 ", 4<<10)
	for ; n > 0; n -= len(piece) {
		w.delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}`, index, piece[:min(n, len(piece))]))
	}
	w.delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":"\"}"}}]}`, index))
}

// line writes an event of n bytes of text.
func (w writer) line(n int) {
	fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"`)
	for piece := strings.Repeat("x", 1<<20); n > 0; n -= len(piece) {
		fmt.Fprint(w, piece)
	}
	fmt.Fprint(w, "\"}}]}\n\n")
}

// hugeAnswers runs a proxy that offers recall before an upstream whose answers are written by function: the first one of each request, and "ok" once it
// gets the results.
type hugeAnswers struct {
	t    testing.TB
	p    *process
	mu   sync.Mutex
	told string // the last request with results
}

func newHugeAnswers(t testing.TB, limits string, answers map[string]func(writer)) *hugeAnswers {
	t.Helper()
	h := &hugeAnswers{t: t}
	upstream := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		w := writer{bufio.NewWriterSize(rw, 64<<10)}
		defer w.Flush()
		rw.Header().Set("Content-Type", "text/event-stream")
		if bytes.Contains(text, []byte(`"role":"tool"`)) {
			h.mu.Lock()
			h.told = string(text)
			h.mu.Unlock()
			w.delta(`{"content":"ok"}`)
			w.finish("stop")
			return
		}
		for name, answer := range answers {
			if bytes.Contains(text, []byte(`"content":"`+name+`"`)) {
				answer(w)
			}
		}
	}))
	t.Cleanup(upstream.Close)
	s := &setting{url: upstream.URL + "/v1"}
	h.p = serve(t, "--config", s.writeWith(t, embedded(newStore(t)), "llm_config: cheap, recall: true", limits))
	return h
}

// ask asks for an answer and returns its length, its last bytes, and whether it ended as it should.
func (h *hugeAnswers) ask(name string) (n int64, end string, err error) {
	h.t.Helper()
	a := send(h.t, h.p, fmt.Appendf(nil, `{"model":%q,"stream":true,"messages":[{"role":"user","content":%q}],"tools":[{"type":"function","function":{"name":"run","parameters":{}}}]}`,
		judge.Model, name))
	defer a.Body.Close()
	tail := &lastBytes{}
	n, err = io.Copy(tail, a.Body)
	return n, string(tail.kept), err
}

// awaitNothingHeld waits until no bytes are counted as held: a client has its answer before its request is released.
func (h *hugeAnswers) awaitNothingHeld() {
	h.t.Helper()
	for end := time.Now().Add(patience); h.p.metric("dewpoint_bytes_in_flight") != 0; {
		if time.Now().After(end) {
			h.t.Fatal("bytes are still counted as held")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// lastBytes keeps the end of what is written.
type lastBytes struct{ kept []byte }

func (l *lastBytes) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p...)
	l.kept = l.kept[max(len(l.kept)-1000, 0):]
	return len(p), nil
}

// metric returns the value of a metric without labels, or of its first series.
func (p *process) metric(name string) float64 {
	p.t.Helper()
	for _, line := range p.metrics() {
		series, value, _ := strings.Cut(line, " ")
		if metric, _, _ := strings.Cut(series, "{"); metric == name {
			v, err := strconv.ParseFloat(value, 64)
			ok(p.t, err)
			return v
		}
	}
	return 0
}

// TestHugeAnswersAreNotHeld: while recall is on offer, an answer of any size passes, or is answered, and takes little memory.
func TestHugeAnswersAreNotHeld(t *testing.T) {
	quick.Skip(t)
	const most = 128 << 20 // bytes of the proxy's heap at its largest, since a heap does not shrink
	h := newHugeAnswers(t, "", map[string]func(writer){
		"own":    func(w writer) { w.call("run", 0, 24<<20); w.finish("tool_calls") },
		"hidden": func(w writer) { w.call("recall", 0, 24<<20); w.finish("tool_calls") },
		"line":   func(w writer) { w.line(100 << 20); w.finish("stop") },
		"many": func(w writer) {
			for i := range 4000 {
				w.call("recall", i, 8)
			}
			w.finish("tool_calls")
		},
	})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if n, end, err := h.ask("own"); err != nil || n < 24<<20 || !strings.HasSuffix(end, "[DONE]\n\n") {
				t.Errorf("a call of the client's: %d bytes, %v, ...%s", n, err, end)
			}
		})
	}
	all.Wait()
	if n, end, err := h.ask("line"); err != nil || n < 100<<20 || !strings.HasSuffix(end, "[DONE]\n\n") {
		t.Errorf("a long line: %d bytes, %v, ...%s", n, err, end)
	}
	for _, c := range [][2]string{{"hidden", "The arguments are longer than 16384 bytes"}, {"many", "only the first 16 of these calls"}} {
		name, want := c[0], c[1]
		if n, end, err := h.ask(name); err != nil || !strings.Contains(end, `"ok"`) || strings.Contains(end, "recall") || !strings.Contains(h.told, want) {
			t.Errorf("%s: %d bytes, %v, ...%s; upstream was told %.1000s", name, n, err, end, h.told)
		}
	}
	if n := strings.Count(h.told, "only the first 16 of these calls"); n != 4000-16 {
		t.Errorf("%d calls were refused, want all but 16", n)
	}
	if heap := h.p.metric("go_memstats_heap_sys_bytes"); heap > most {
		t.Errorf("the heap grew to %.0f bytes", heap)
	}
	h.awaitNothingHeld()
}

// TestAnswersShareTheBytesInFlight: an answer that the budget has no room for passes, and calls in it that cannot be answered are an error, not the end
// of the agent's run.
func TestAnswersShareTheBytesInFlight(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(release) }) }
	defer end()
	text := func(w writer) {
		for range 1 << 10 {
			w.delta(`{"content":"` + strings.Repeat("x", 1<<10) + `"}`)
		}
	}
	h := newHugeAnswers(t, "limits: {max_body: 64KiB, bytes_in_flight: 512KiB}", map[string]func(writer){
		"text":   func(w writer) { text(w); w.finish("stop") },
		"own":    func(w writer) { text(w); w.call("recall", 0, 8); w.call("run", 1, 8); w.finish("tool_calls") },
		"hidden": func(w writer) { text(w); w.call("recall", 0, 8); w.finish("tool_calls") },
		"small": func(w writer) {
			w.delta(`{"content":"` + strings.Repeat("x", 200<<10) + `"}`)
			w.Flush()
			<-release
			w.finish("stop")
		},
	})
	for _, name := range []string{"text", "own"} {
		if n, end, err := h.ask(name); err != nil || n < 1<<20 || strings.Contains(end, "recall") || !strings.HasSuffix(end, "[DONE]\n\n") {
			t.Errorf("%s: %d bytes, %v, ...%s", name, n, err, end)
		}
	}
	if _, end, _ := h.ask("hidden"); !strings.Contains(end, `"upstream_answer_too_long"`) || strings.Contains(end, "[DONE]") {
		t.Errorf("calls that are lost: ...%s", end)
	}
	if n := h.p.metric("dewpoint_answers_not_kept_total"); n != 2 {
		t.Errorf("%.0f answers are counted, want 2", n)
	}
	a := send(t, h.p, fmt.Appendf(nil, `{"model":%q,"stream":true,"messages":[{"role":"user","content":"small"}],"tools":[{"type":"function","function":{"name":"run","parameters":{}}}]}`, judge.Model))
	a.read(200 << 10)
	if held := h.p.metric("dewpoint_bytes_in_flight"); held < 128<<10 {
		t.Errorf("an answer of which 200 KiB are held counts as %.0f bytes", held)
	}
	end()
	ok(t, a.finish())
	h.awaitNothingHeld()
}
