package condense_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// newestOnly is a custom condenser: it shows only the newest events and hides nothing for good. It may begin inside a unit;
// a real condenser keeps a call and its results together.
type newestOnly struct{ events int }

func (newestOnly) Name() string { return "newest_only" }

func (n newestOnly) Condense(in condense.Input) condense.Decision {
	if len(in.View.Items) <= n.events {
		return condense.Decision{} // nothing is due, and the request is forwarded unchanged
	}
	v := *in.View
	v.Items = v.Items[len(v.Items)-n.events:]
	return condense.Decision{View: &v}
}

// A condenser has one method that decides. It does no I/O.
func ExampleCondenser() {
	v := session.Project(chatter(12), nil)
	var c condense.Condenser = newestOnly{events: 4}
	fmt.Println(c.Name(), len(v.Items), "->", len(c.Condense(input(&v)).View.Items))
	// Output: newest_only 12 -> 4
}

// A summariser is any model that answers a Request. Its answer replaces the events that are hidden.
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

// A custom condenser leaves the choice to somebody else. Here that is a function; a service that the
// configuration names gets the same question and gives the same answer.
func ExampleCustom() {
	v := session.Project(chatter(12), nil)
	c := condense.NewCustom(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10, KeepFirst: 1},
		Summariser: summariserFunc(func(_ context.Context, r condense.Request) (condense.Reply, error) {
			var q condense.Question
			if err := json.Unmarshal([]byte(r.User), &q); err != nil {
				return condense.Reply{}, err
			}
			a := condense.Answer{Record: "COMPLETED: the first steps"}
			left := q.Count
			for _, unit := range q.Units {
				if unit.State == condense.UnitMayGo && left > q.Target.Count-1 {
					for _, m := range unit.Messages {
						a.Hide = append(a.Hide, m.ID)
						left--
					}
				}
			}
			text, err := json.Marshal(a)
			return condense.Reply{Text: string(text)}, err
		}),
	})
	r, err := c.Condense(input(&v)).Job.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	after := session.Project(v.History, []session.Condensation{r.Condensation})
	fmt.Println(r.Condensation.Condenser, len(v.Items), "->", len(after.Items))
	// Output: custom 12 -> 5
}

// Stages of a pipeline see the view that the stage before them left.
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
