package condense_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// reader is a summariser with a small window that records its requests.
type reader struct {
	mu     sync.Mutex
	asked  []condense.Request
	answer func(condense.Request) (condense.Reply, error)
}

func (r *reader) Summarise(_ context.Context, q condense.Request) (condense.Reply, error) {
	r.mu.Lock()
	r.asked = append(r.asked, q)
	r.mu.Unlock()
	return r.answer(q)
}

func fineReply(q condense.Request) (condense.Reply, error) {
	record := "MERGED: all"
	if part := regexp.MustCompile(`part (\d+) of`).FindStringSubmatch(q.User); part != nil {
		record = "PART " + part[1] + ": read"
	}
	return condense.Reply{Text: record, Finish: "stop", Usage: session.Usage{Input: 10, Output: 1}}, nil
}

// inParts condenses a history that does not fit the summariser's window.
func inParts(t *testing.T, r *reader, events int, need condense.Need, log ...session.Condensation) (condense.Result, error) {
	t.Helper()
	v := session.Project(chatter(events), log)
	in := input(&v)
	in.Need = need
	l := condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10, KeepFirst: 1}, Summariser: r, Window: 2700, MaxOutput: 400,
	})
	return l.Condense(in).Job.Run(context.Background())
}

// eventText returns the beginning of the text of an event of chatter, with its index.
var eventText = regexp.MustCompile(`<dewpoint_event kind="[a-z]+">\nmessage (\d+) `)

// TestPartsShowEverything checks that each event is in exactly one part, that each call fits the window and shows the
// previous record in full, and that the last call gets the parts in order.
func TestPartsShowEverything(t *testing.T) {
	first, err := inParts(t, &reader{answer: fineReply}, 60, condense.Need{})
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{answer: fineReply}
	result, err := inParts(t, r, 140, condense.Need{}, first.Condensation)
	if err != nil || result.Fallback != nil {
		t.Fatalf("%v, %v", err, result.Fallback)
	}
	seen := map[string]int{}
	for _, q := range r.asked {
		if n := count(q.System+q.User) + q.MaxOutput; n > 2700 {
			t.Errorf("%d tokens, the window has 2700", n)
		}
		if !strings.Contains(q.User, "<dewpoint_previous>\nMERGED") {
			t.Error("the previous record is not in it")
		}
		for _, id := range eventText.FindAllStringSubmatch(q.User, -1) {
			seen[id[1]]++
		}
	}
	for _, p := range result.Condensation.Forgotten {
		for id := p.From; id < p.To; id++ {
			if n := seen[fmt.Sprint(id-1)]; n != 1 {
				t.Errorf("event %d was shown %d times", id, n)
			}
		}
	}
	if len(r.asked) < 3 || len(r.asked) > 8 {
		t.Errorf("%d calls", len(r.asked))
	}
	merge := r.asked[len(r.asked)-1].User
	if !(strings.Index(merge, "PART 1") < strings.Index(merge, "PART 2")) || strings.Contains(merge, "<dewpoint_event ") {
		t.Errorf("not the parts in order: %s", merge)
	}
}

// TestPartsFail checks that one failed part is a failure, and that on a hard need the second attempt stays within the
// remaining calls.
func TestPartsFail(t *testing.T) {
	broken := func(q condense.Request) (condense.Reply, error) {
		if strings.Contains(q.User, "part 2 of") {
			return condense.Reply{Finish: "stop"}, nil
		}
		return fineReply(q)
	}
	r := &reader{answer: broken}
	_, err := inParts(t, r, 140, condense.Need{})
	if e, ok := errors.AsType[*condense.SummaryError](err); !ok || e.Kind != condense.FaultEmpty {
		t.Errorf("soft: %v", err)
	}
	r = &reader{answer: func(condense.Request) (condense.Reply, error) {
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureServer, Status: 500}
	}}
	result, err := inParts(t, r, 400, condense.Need{Reason: session.ReasonRequest, Hard: true})
	if err != nil || result.Fallback == nil {
		t.Errorf("hard: %v, fallback %v", err, result.Fallback)
	}
	r = &reader{answer: func(q condense.Request) (condense.Reply, error) {
		if strings.Contains(q.User, "These are part ") {
			return fineReply(q)
		}
		return condense.Reply{Finish: "stop"}, nil
	}}
	result, err = inParts(t, r, 400, condense.Need{Reason: session.ReasonRequest, Hard: true})
	if err != nil || result.Fallback == nil {
		t.Errorf("hard, no merge: %v, fallback %v", err, result.Fallback)
	}
	if len(r.asked) != 8 {
		t.Errorf("%d calls, want all of 8", len(r.asked))
	}
}

// TestPartsPanic checks that a panic in a part is raised where the condensation was run, and only after all parts have
// ended.
func TestPartsPanic(t *testing.T) {
	var reading atomic.Int32
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "broken reply") {
			t.Errorf("recovered %v", v)
		}
		if n := reading.Load(); n != 0 {
			t.Errorf("%d parts are still being read", n)
		}
	}()
	_, err := inParts(t, &reader{answer: func(q condense.Request) (condense.Reply, error) {
		reading.Add(1)
		defer reading.Add(-1)
		if strings.Contains(q.User, "part 2 of") {
			panic("broken reply")
		}
		return fineReply(q)
	}}, 60, condense.Need{})
	t.Errorf("it went on: %v", err)
}
