package engine_test

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
)

// held is a summariser that answers when it is let go.
type held struct{ asked, free chan struct{} }

func (h held) Summarise(context.Context, condense.Request) (condense.Reply, error) {
	h.asked <- struct{}{}
	<-h.free
	return condense.Reply{Text: "DISCUSSED: the sea.", Finish: "stop"}, nil
}

// noticed is a context that tells when it is first waited for.
type noticed struct {
	context.Context
	once   *sync.Once
	waited chan struct{}
}

func (n noticed) Done() <-chan struct{} {
	n.once.Do(func() { close(n.waited) })
	return n.Context.Done()
}

// TestIdenticalFirstRequests: of two requests that begin the same new thread at once, one condenses, and the other shows it, too.
func TestIdenticalFirstRequests(t *testing.T) {
	summariser := held{asked: make(chan struct{}), free: make(chan struct{})}
	r := newRig(t, condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10, KeepFirst: 1}, Summariser: summariser, Model: "cheap",
	}))
	for _, n := range []int{7, 9} { // the answer before the fork was relayed, which proves that it is one
		asked := r.begin(says(n), engine.WishNone)
		r.logged(asked)
		must(t, asked.Answered(dialect.Answer{Text: "The sea is deep."})(t.Context()))
	}
	fork := func() *body {
		return &body{bytes: bytes.Replace(says(13).bytes, []byte("8: The sea"), []byte("8: The lake"), 1)}
	}
	first, second := r.begin(fork(), engine.WishNone), r.begin(fork(), engine.WishNone)
	if !first.Place().New || !second.Place().New || first.Place().Thread.ID != second.Place().Thread.ID {
		t.Fatalf("%+v and %+v do not begin one thread", first.Place().Thread, second.Place().Thread)
	}
	var both sync.WaitGroup
	both.Go(func() { first.Condense(t.Context()) })
	<-summariser.asked
	waits := noticed{t.Context(), &sync.Once{}, make(chan struct{})}
	both.Go(func() { second.Condense(waits) })
	<-waits.waited
	close(summariser.free)
	both.Wait()
	if got := forwarded(second); bytes.Equal(got, fork().bytes) || !bytes.Equal(got, forwarded(first)) {
		t.Errorf("one forwards %d bytes, the other %d", len(forwarded(first)), len(got))
	}
}
