package e2e

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// names are the names of a crowd's runs. About half of a run's tool results contain its name, and nothing else does. The other results are the
// same in all runs.
var names = []string{"ALPHA", "BRAVO", "CHARLIE"}

// crowd is a set of runs of one agent, with one API key and without session ids. They begin with the same messages and get the same answers,
// whose calls may have the same ids.
type crowd struct {
	t        *testing.T
	number   int
	rng      *rand.Rand
	wire     wire
	repeated uint64 // steps whose call has an id that the other runs and, if constant, other steps have too
	constant bool
	runs     []*idRun
}

type idRun struct {
	name    string
	step    int
	habit   int // how its client changes its history
	history []idStep
	summary string // replaces the messages that the client left out
}

type idStep struct{ id, text, result string }

// The habits of clients.
const (
	keepsAll = iota
	cutsResults
	editsFirst
	compacts
	habits
)

// TestRepeatedCallIDs: whatever ids a server gives its calls, no forwarded request contains text of two runs. Some servers give each call the
// same id, number calls from 0 in each answer, or derive ids from the call. In every second crowd, a run's next request waits until the answer is
// in the log; in the others it is sent at once.
func TestRepeatedCallIDs(t *testing.T) {
	t.Parallel()
	for _, condenser := range []string{"{type: excerpts, max_size: 8, min_tokens: 0, recall: true}", "{type: llm, max_size: 8, min_tokens: 0, recall: true}"} {
		t.Run(condenser[1:12], func(t *testing.T) {
			t.Parallel()
			repeatIDs(t, condenser)
		})
	}
}

func repeatIDs(t *testing.T, condenser string) {
	const crowds, steps = 24, 14
	up := &idUpstream{t: t}
	p := serveBefore(t, up, condenser)
	for n := range crowds {
		c := newCrowd(t, n)
		for range steps * len(c.runs) {
			run := c.runs[c.rng.IntN(len(c.runs))]
			up.next.Store(c.next(run))
			logged := p.spent().calls["mark"]
			text, err := sendTo(t, p, c.wire.path, []byte(c.request(run)), http.Header{"Authorization": {fmt.Sprint("Bearer crowd-", n)}}).rest()
			ok(t, err)
			c.advance(run, text)
			for end := time.Now().Add(patience); n%2 == 0 && p.spent().calls["mark"] <= logged; {
				if time.Now().After(end) {
					t.Fatal("an answer is not logged")
				}
			}
		}
	}
	if up.recalled.Load() == 0 || up.condensed.Load() == 0 {
		t.Errorf("recall was called %d times, and %d requests had a record", up.recalled.Load(), up.condensed.Load())
	}
	t.Logf("%d calls of recall, %d requests with a record", up.recalled.Load(), up.condensed.Load())
}

// idUpstream answers with the next step, or with a call of recall. Its summaries contain the names in the summarised text.
type idUpstream struct {
	t                          *testing.T
	next                       atomic.Pointer[idStep]
	asked, recalled, condensed atomic.Int64
}

func (u *idUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	raw, _ := io.ReadAll(r.Body)
	body := string(raw)
	found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.Contains(body, name+": ") })
	if len(found) > 1 {
		u.t.Errorf("%s: a request has the text of %s: %s", r.Header.Get("Authorization"), found, body)
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.Contains(body, `"small"`) {
		said := strings.Join(regexp.MustCompile(`[A-Z]+: test\d+`).FindAllString(body, -1), ", ")
		_, _ = io.WriteString(w, wireOf(r).answer(len(raw)/4, "CURRENT_STATE: "+said, "", "", ""))
		return
	}
	if strings.Contains(body, "dewpoint_record") {
		u.condensed.Add(1)
	}
	step := *u.next.Load()
	call, arguments := step, "{}"
	if strings.Contains(body, `"recall"`) && !strings.Contains(body, "recall_1") && u.asked.Add(1)%3 == 0 {
		u.recalled.Add(1)
		call.id, call.result, arguments = "recall_1", "recall", `{"query": "test failed with code"}`
	}
	_, _ = io.WriteString(w, wireOf(r).answer(len(raw)/4, call.text, call.id, cmp.Or(call.result, "sh"), arguments))
}

func newCrowd(t *testing.T, n int) *crowd {
	rng := rand.New(rand.NewPCG(uint64(n), 51))
	c := &crowd{
		t: t, number: n, rng: rng, wire: wires()[n%3],
		repeated: rng.Uint64() | rng.Uint64(), constant: rng.IntN(2) == 0,
	}
	for _, name := range names[:2+rng.IntN(2)] {
		c.runs = append(c.runs, &idRun{name: name, habit: rng.IntN(habits)})
	}
	return c
}

// next returns the answer that upstream will give a run.
func (c *crowd) next(run *idRun) *idStep {
	s := &idStep{id: fmt.Sprintf("call_%s_%02d_%02d", strings.ToLower(run.name), c.number, run.step)}
	switch {
	case c.repeated>>run.step&1 == 0:
	case c.constant:
		s.id = "ZsSt4SkIFMRz0HtqT7MTlimNvzlKM896"
	default:
		s.id = fmt.Sprintf("call_of_sh_%04d", run.step)
	}
	if run.step%3 == 1 {
		s.text = fmt.Sprintf("Now I look at part %d of the build.", run.step)
	}
	return s
}

// advance adds an answer and its result to a run's history, which its client may change.
func (c *crowd) advance(run *idRun, answer string) {
	step := *c.next(run)
	if !strings.Contains(answer, step.id) {
		c.t.Fatalf("crowd %d: got %s", c.number, answer)
	}
	if c.rng.IntN(2) == 0 {
		step.result = []string{"ok", ""}[run.step%2]
	} else {
		step.result = fmt.Sprintf("%s: step %d. ", run.name, run.step) +
			strings.Repeat(fmt.Sprintf("%s: test%d failed with code %d. ", run.name, run.step, c.rng.IntN(90)), 1+c.rng.IntN(12))
	}
	run.history = append(run.history, step)
	run.step++
	switch {
	case run.habit == cutsResults && len(run.history) > 3:
		run.history[len(run.history)-4].result = "[cleared]"
	case run.habit == compacts && run.step%6 == 0:
		run.summary = "The build was looked at. Go on with what is left."
		run.history = slices.Clone(run.history[len(run.history)-1:])
	}
}

func (c *crowd) request(run *idRun) string {
	first := cmp.Or(run.summary, "Check the build and report.")
	if run.habit == editsFirst {
		first += fmt.Sprintf(" Step %d.", run.step)
	}
	elements := []string{c.wire.user(first)}
	for _, s := range run.history {
		elements = append(elements, c.wire.step(s.id, s.text, s.result)...)
	}
	return c.wire.body(elements)
}
