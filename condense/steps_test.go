package condense_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// reader is a summariser with a small window that records its requests.
type reader struct {
	asked  []condense.Request
	answer func(condense.Request) (condense.Reply, error)
}

func (r *reader) Summarise(_ context.Context, q condense.Request) (condense.Reply, error) {
	r.asked = append(r.asked, q)
	return r.answer(q)
}

func fineReply(q condense.Request) (condense.Reply, error) {
	before := regexp.MustCompile(`STEP: (\d+)`).FindStringSubmatch(q.User)
	n := 0
	if before != nil {
		n, _ = strconv.Atoi(before[1])
	}
	return condense.Reply{Text: fmt.Sprintf("STEP: %d", n+1), Finish: "stop", Usage: session.Usage{Input: 10, Output: 1}}, nil
}

// inSteps condenses a history that does not fit the summariser's window.
func inSteps(t *testing.T, r *reader, events int, need condense.Need, log ...session.Condensation) (condense.Result, error) {
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

// TestStepsShowEverything checks that each event is in exactly one step, that each call fits the window and continues the
// record of the one before it, and that the last record stands in the view.
func TestStepsShowEverything(t *testing.T) {
	first, err := inSteps(t, &reader{answer: fineReply}, 60, condense.Need{})
	if err != nil {
		t.Fatal(err)
	}
	known, _ := strconv.Atoi(regexp.MustCompile(`STEP: (\d+)`).FindStringSubmatch(first.Condensation.Summary)[1])
	r := &reader{answer: fineReply}
	result, err := inSteps(t, r, 140, condense.Need{}, first.Condensation)
	if err != nil || result.Fallback != nil {
		t.Fatalf("%v, %v", err, result.Fallback)
	}
	seen := map[string]int{}
	for i, q := range r.asked {
		if n := count(q.System+q.User) + q.MaxOutput; n > 2700 {
			t.Errorf("%d tokens, the window has 2700", n)
		}
		if !strings.Contains(q.User, fmt.Sprintf("<dewpoint_previous>\nSTEP: %d\n", known+i)) {
			t.Errorf("step %d does not continue the record before it", i+1)
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
	if want := fmt.Sprintf("STEP: %d", known+len(r.asked)); !strings.Contains(result.Condensation.Summary, want) {
		t.Errorf("%s is not in %s", want, result.Condensation.Summary)
	}
}

// TestStepsFail checks that one failed step is a failure, and that on a hard need the second attempt stays within the
// remaining calls.
func TestStepsFail(t *testing.T) {
	broken := func(at string) func(condense.Request) (condense.Reply, error) {
		return func(q condense.Request) (condense.Reply, error) {
			if strings.Contains(q.User, at) {
				return condense.Reply{Finish: "stop"}, nil
			}
			return fineReply(q)
		}
	}
	r := &reader{answer: broken("STEP: 1\n")}
	_, err := inSteps(t, r, 140, condense.Need{})
	if e, ok := errors.AsType[*condense.SummaryError](err); !ok || e.Kind != condense.FaultEmpty {
		t.Errorf("soft: %v", err)
	}
	if len(r.asked) != 2 {
		t.Errorf("%d calls, want none after the second, which failed", len(r.asked))
	}
	r = &reader{answer: func(condense.Request) (condense.Reply, error) {
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureServer, Status: 500}
	}}
	result, err := inSteps(t, r, 400, condense.Need{Reason: session.ReasonRequest, Hard: true})
	if err != nil || result.Fallback == nil {
		t.Errorf("hard: %v, fallback %v", err, result.Fallback)
	}
	r = &reader{answer: broken("STEP: 6\n")}
	result, err = inSteps(t, r, 400, condense.Need{Reason: session.ReasonRequest, Hard: true})
	if err != nil || result.Fallback != nil {
		t.Errorf("hard, no last step: %v, fallback %v", err, result.Fallback)
	}
	if len(r.asked) != 8 {
		t.Errorf("%d calls, want all of 8", len(r.asked))
	}
}

// TestLongStepRecord checks that a record which leaves the next step no room is a failure.
func TestLongStepRecord(t *testing.T) {
	r := &reader{answer: func(condense.Request) (condense.Reply, error) {
		return condense.Reply{Text: "STEP: 1" + strings.Repeat(" long", 500), Finish: "stop"}, nil
	}}
	_, err := inSteps(t, r, 140, condense.Need{})
	if e, ok := errors.AsType[*condense.SummaryError](err); !ok || e.Kind != condense.FaultInflated || len(r.asked) != 1 {
		t.Errorf("%v after %d calls", err, len(r.asked))
	}
}
