package condense_test

import (
	"context"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// newestOnly is a condenser of one's own: it shows the newest events and forgets nothing. It may begin inside a unit; a real
// one keeps a call and its results together.
type newestOnly struct{ events int }

func (newestOnly) Name() string { return "newest_only" }

func (n newestOnly) Condense(in condense.Input) condense.Decision {
	if len(in.View.Items) <= n.events {
		return condense.Decision{} // nothing is due: the request is forwarded unchanged
	}
	v := *in.View
	v.Items = v.Items[len(v.Items)-n.events:]
	return condense.Decision{View: &v}
}

// A condenser is one method that decides; it does no I/O.
func ExampleCondenser() {
	v := session.Project(chatter(12), nil)
	var c condense.Condenser = newestOnly{events: 4}
	fmt.Println(c.Name(), len(v.Items), "->", len(c.Condense(input(&v)).View.Items))
	// Output: newest_only 12 -> 4
}

// A summariser is any model that answers a Request. What it writes stands in the place of the events that are forgotten.
func ExampleSummariser() {
	v := session.Project(chatter(12), nil)
	c := condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10, KeepFirst: 1},
		Summariser: summariserFunc(func(context.Context, condense.Request) (condense.Reply, error) {
			return condense.Reply{Text: "COMPLETED: the first steps"}, nil
		}),
	})
	job := c.Condense(input(&v)).Job
	r, err := job.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	after := session.Project(v.History, []session.Condensation{r.Condensation})
	fmt.Println(job.Need().Reason, len(v.Items), "->", len(after.Items))
	// Output: events 12 -> 5
}

// Stages of a pipeline see what the one before them left.
func ExamplePipeline() {
	messages := []session.Message{condensetest.Message(session.Content{Role: "user", Text: "go"})}
	for i := range 6 {
		id := fmt.Sprint("call", i)
		messages = append(messages,
			condensetest.Message(session.Content{Role: "assistant", Calls: []session.Call{{ID: id, Name: "run", Arguments: "{}"}}}),
			condensetest.Message(session.Content{Role: "tool", Result: id, Text: "output" + pad(50)}))
	}
	v := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	p := condense.Pipeline{Stages: []condense.Condenser{
		condense.ObservationMasking{AttentionWindow: 6},
		condense.RecentEvents{KeepFirst: 1, MaxEvents: 9},
	}}
	shown := p.Condense(input(&v)).View
	fmt.Println(len(v.Items), "->", len(shown.Items))
	// Output: 13 -> 9
}
