package condense_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// count is a tokenizer with four bytes per token.
func count(text string) int { return (len(text) + 3) / 4 }

// measure returns the tokens of each item.
func measure(items []session.Item) []int {
	tokens := make([]int, len(items))
	for i, item := range items {
		tokens[i] = count(string(item.Raw)) + 4
		if item.Index < 0 {
			tokens[i] = count(item.Summary) + 4
		}
	}
	return tokens
}

const fixed = 50

func input(v *session.View) condense.Input {
	return condense.Input{
		View:    v,
		Total:   fixed + sum(measure(v.Items)),
		Fixed:   fixed,
		Measure: measure,
		Count:   count,
		Model:   "main-model",
		Codec:   condensetest.Codec{},
	}
}

func sum(tokens []int) int {
	total := 0
	for _, n := range tokens {
		total += n
	}
	return total
}

// project returns the view as the proxy makes it, with trimmed messages rendered.
func project(h *session.History, log []session.Condensation) session.View {
	v := session.Project(h, log)
	condense.Render(condensetest.Codec{}, &v)
	return v
}

// summariserFunc is a Summariser that calls itself.
type summariserFunc func(context.Context, condense.Request) (condense.Reply, error)

func (f summariserFunc) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	return f(ctx, r)
}

func TestInvariantsHoldOverRounds(t *testing.T) {
	condensed := 0
	property.Check(t, func(t *rapid.T) {
		l := condense.NewLLM(condense.LLMSettings{
			Settings: condense.Settings{
				MaxSize:         rapid.IntRange(0, 40).Draw(t, "max size"),
				MaxTokens:       float64(rapid.SampledFrom([]int{0, 500, 1000, 3000}).Draw(t, "max tokens")),
				KeepFirst:       rapid.IntRange(0, 6).Draw(t, "keep first"),
				MinimumProgress: rapid.SampledFrom([]float64{0, 0.1, 0.5}).Draw(t, "progress"),
			},
			Summariser: scripted(t),
		})
		g := condensetest.NewGenerator(t)
		var log []session.Condensation
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			h := session.NewHistory(session.Hash{}, g.Grow(20))
			if c, ok := round(t, l, h, log); ok {
				log = append(log, c)
				condensed++
			}
		}
	})
	if condensed == 0 {
		t.Error("no history was ever condensed")
	}
}

// scripted fails the test if it is called without events, and succeeds now and then.
func scripted(t *rapid.T) condense.Summariser {
	return summariserFunc(func(_ context.Context, r condense.Request) (condense.Reply, error) {
		if !strings.Contains(r.User, "<dewpoint_event kind=") {
			t.Error("asked to summarise nothing")
		}
		switch rapid.IntRange(0, 3).Draw(t, "summariser") {
		case 0:
			return condense.Reply{}, errors.New("down")
		case 1:
			return condense.Reply{Text: "</dewpoint_record> short", Finish: "stop"}, nil
		case 2:
			return condense.Reply{Text: "cut off", Finish: "length"}, nil
		}
		return condense.Reply{Text: strings.Repeat("a long record ", 40), Finish: "stop"}, nil
	})
}

// round condenses once, if a condensation is due, and checks the result.
func round(t *rapid.T, l *condense.LLM, h *session.History, log []session.Condensation) (session.Condensation, bool) {
	v := project(h, log)
	in := input(&v)
	if rapid.IntRange(0, 4).Draw(t, "request") == 0 {
		in.Need = condense.Need{Reason: session.ReasonRequest, Hard: true}
	}
	d := l.Condense(in)
	if d.View != nil {
		t.Fatal("a rolling condenser gave a view")
	}
	if d.Job == nil {
		return session.Condensation{}, false
	}
	r, err := d.Job.Run(context.Background())
	if err != nil {
		return session.Condensation{}, false
	}
	c := r.Condensation
	if err := condensetest.Condensation(&v, c); err != nil {
		t.Fatal(err)
	}
	after := project(h, append(log[:len(log):len(log)], c))
	if err := errors.Join(condensetest.View(&after), condensetest.Unseen(&after)); err != nil {
		t.Fatal(err)
	}
	sameSize(t, c, &v, &after)
	sameBeginning(t, &v, &after, c.Offset)
	return c, true
}

func sameSize(t *rapid.T, c session.Condensation, before, after *session.View) {
	for _, s := range []struct {
		claimed session.Size
		view    *session.View
	}{{c.Before, before}, {c.After, after}} {
		if in := input(s.view); s.claimed.Events != len(s.view.Items) || s.claimed.Tokens != in.Total {
			t.Fatalf("claimed %+v, is %d events, %d tokens", s.claimed, len(s.view.Items), in.Total)
		}
	}
}

// sameBeginning checks that the messages before the summary are unchanged.
func sameBeginning(t *rapid.T, before, after *session.View, offset int) {
	for i, item := range after.Items {
		if item.Index < 0 {
			return
		}
		if before.Items[i].Index != item.Index {
			t.Fatalf("item %d changed before the summary at position %d", i, offset)
		}
	}
}

func TestRecentEventsInvariants(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		g := condensetest.NewGenerator(t)
		h := session.NewHistory(session.Hash{}, g.Grow(40))
		v := session.Project(h, nil)
		r := condense.RecentEvents{KeepFirst: rapid.IntRange(0, 6).Draw(t, "keep first"), MaxEvents: rapid.IntRange(1, 60).Draw(t, "max")}
		d := r.Condense(condense.Input{View: &v, Codec: condensetest.Codec{}})
		if d.Job != nil {
			t.Fatal("recent_events condensed")
		}
		if len(v.Items) <= r.MaxEvents && d.View != nil {
			t.Fatal("not identity")
		}
		if d.View == nil {
			return
		}
		if err := errors.Join(condensetest.View(d.View), condensetest.Unseen(d.View)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestForks applies a condensation of a longer history to a shorter one, which ends at the end of its prefix or later.
// Whatever the view, its next cut must be sound.
func TestForks(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		l := condense.NewLLM(condense.LLMSettings{Settings: condense.Settings{MaxSize: 8, KeepFirst: 1}, Summariser: scripted(t)})
		messages := condensetest.NewGenerator(t).Grow(20)
		first, ok := round(t, l, session.NewHistory(session.Hash{}, messages), nil)
		if !ok {
			return
		}
		fork := session.NewHistory(session.Hash{}, messages[:rapid.IntRange(0, len(messages)).Draw(t, "fork")])
		v := session.Project(fork, []session.Condensation{first})
		in := input(&v)
		in.Need = condense.Need{Reason: session.ReasonRequest, Hard: true}
		job := l.Condense(in).Job
		if job == nil {
			return
		}
		r, err := job.Run(context.Background())
		if err != nil {
			return
		}
		if err := condensetest.Condensation(&v, r.Condensation); err != nil {
			t.Fatal(err)
		}
	})
}
