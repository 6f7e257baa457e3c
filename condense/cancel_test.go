package condense_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// leaving is a codec that cancels the context while messages are read.
type leaving struct {
	condensetest.Codec
	left  context.CancelFunc
	after int
	reads *int
}

func (l leaving) Read(raw []byte) (session.Content, error) {
	if *l.reads++; *l.reads == l.after {
		l.left()
	}
	return l.Codec.Read(raw)
}

// TestReadingStops checks that a cancelled condensation reads no further event, calls no model and fails, and that it
// computes only in the pool.
func TestReadingStops(t *testing.T) {
	summariser := summariserFunc(func(context.Context, condense.Request) (condense.Reply, error) {
		t.Error("the model was asked")
		return condense.Reply{}, nil
	})
	settings := condense.Settings{MaxSize: 8, KeepFirst: 1}
	for _, c := range []condense.Condenser{
		condense.NewLLM(condense.LLMSettings{Settings: settings, Summariser: summariser}),
		condense.Excerpts{Settings: settings},
	} {
		var messages []session.Message
		for i := range 100 {
			role := []string{"user", "assistant"}[i%2]
			messages = append(messages, condensetest.Message(session.Content{Role: role, Text: "go on with a/b.go"}))
		}
		v := session.Project(session.NewHistory(session.Hash{}, messages), nil)
		ctx, cancel := context.WithCancel(t.Context())
		reads, works := 0, 0
		in := input(&v)
		in.Codec = leaving{left: cancel, after: 3, reads: &reads}
		in.Work = func(_ context.Context, f func()) error {
			works++
			f()
			return nil
		}
		_, err := c.Condense(in).Job.Run(ctx)
		if !errors.Is(err, context.Canceled) || reads != 3 || works != 1 {
			t.Errorf("%s: %v after %d messages, %d times in the pool", c.Name(), err, reads, works)
		}
	}
}

// TestNoPlaceToWork checks that a condensation that gets no place in the pool fails before it reads anything.
func TestNoPlaceToWork(t *testing.T) {
	var messages []session.Message
	for i := range 20 {
		messages = append(messages, condensetest.Message(session.Content{Role: []string{"user", "assistant"}[i%2], Text: "go on"}))
	}
	v := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	in, full := input(&v), errors.New("full")
	in.Work = func(context.Context, func()) error { return full }
	l := condense.NewLLM(condense.LLMSettings{Settings: condense.Settings{MaxSize: 8, KeepFirst: 1}, Summariser: summariserFunc(nil)})
	if _, err := l.Condense(in).Job.Run(t.Context()); !errors.Is(err, full) {
		t.Error(err)
	}
}
