package admin_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

type item struct {
	Status, Kind string
	Message      json.RawMessage
	Event        *struct{ Position int }
}

type diffed struct {
	Events []struct {
		Kind, Status, Thread string
		Position             int
		HiddenBy             *struct{ Seq int } `json:"hidden_by"`
		Index                *int               `json:"view_index"`
	}
	Summary *struct {
		Before int `json:"before_position"`
		Index  int `json:"view_index"`
		Text   string
	}
	Log, View struct{ Events, Tokens int }
}

// compare checks that a thread's view is what upstream received last, and that the diff is consistent with it.
func (r *rig) compare(p place) (statuses map[string]int, d diffed) {
	r.t.Helper()
	var view struct{ Items []item }
	r.get(p.url("/view"), &view)
	got, want := []string{}, r.received()
	for _, i := range view.Items {
		got = append(got, string(i.Message))
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("the view is not what upstream got: %d and %d messages, the first that differs is %d", len(got), len(want), differs(got, want))
	}
	r.get(p.url("/diff"), &d)
	statuses = map[string]int{}
	shown := 0
	for _, e := range d.Events {
		statuses[e.Status]++
		if hidden := e.Status == "forgotten" || e.Status == "left_out"; hidden != (e.Index == nil) || (e.Status == "forgotten") != (e.HiddenBy != nil) {
			r.t.Errorf("event %+v", e)
		}
		if e.Index != nil {
			shown++
			if of := view.Items[*e.Index]; of.Status != e.Status || of.Event.Position != e.Position {
				r.t.Errorf("event %+v is item %+v", e, of)
			}
		}
	}
	if d.Summary != nil {
		shown++
		if !strings.Contains(want[d.Summary.Index], "dewpoint_record") || d.Summary.Text == "" {
			r.t.Errorf("summary %+v", d.Summary)
		}
	}
	if shown != len(want) || d.View.Events != len(want) || d.Log.Events != len(d.Events) {
		r.t.Errorf("%d shown of %d events, upstream got %d", shown, len(d.Events), len(want))
	}
	return statuses, d
}

func differs(a, b []string) int {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

// TestViewIsWhatUpstreamGot compares the view with upstream's request after each request, for each kind of condenser.
func TestViewIsWhatUpstreamGot(t *testing.T) {
	quick.Skip(t)
	with := func(condenser config.Condenser) func(*config.Config) {
		return func(c *config.Config) {
			c.Condenser = condenser
			c.Condenser.LLMConfig = "cheap"
		}
	}
	of := func(kind string, change func(*config.Condenser)) config.Condenser {
		c := catalogue.Default(kind)
		change(&c)
		return c
	}
	masking := of(catalogue.TypeObservationMasking, func(c *config.Condenser) { c.AttentionWindow, c.Stride = 6, 2 })
	llm := of(catalogue.TypeLLM, func(c *config.Condenser) {
		c.MaxSize, c.MinTokens, c.KeepFirst, c.Trigger = 10, 0, 1, catalogue.TriggerLimits
	})
	recent := of(catalogue.TypeRecentEvents, func(c *config.Condenser) { c.MaxEvents, c.KeepFirst = 8, 1 })
	trim := of(catalogue.TypeToolOutputTrim, func(c *config.Condenser) { c.MaxEventLength = 400 })
	for name, c := range map[string]struct {
		change func(*config.Config)
		want   []string // statuses that occur
	}{
		"llm":          {with(llm), []string{"kept", "forgotten"}},
		"masking":      {with(masking), []string{"kept", "rewritten"}},
		"recent":       {with(recent), []string{"kept", "left_out"}},
		"trim":         {with(trim), []string{"kept", "trimmed"}},
		"all of them":  {with(config.Condenser{Type: catalogue.TypePipeline, Condensers: []config.Condenser{trim, masking, fitted(llm)}}), []string{"kept", "trimmed", "rewritten", "forgotten"}},
		"noop":         {with(catalogue.Default(catalogue.TypeNoop)), []string{"kept"}},
		"only observe": {func(c *config.Config) { c.Tenants = []config.Tenant{observing()} }, []string{"kept"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, c.change)
			run := toolRun(12)
			seen := map[string]int{}
			var p place
			for n := 2; n <= len(run); n += 2 {
				p = r.ask(run[:n])
				statuses, _ := r.compare(p)
				for status, count := range statuses {
					seen[status] += count
				}
			}
			for _, want := range c.want {
				if seen[want] == 0 {
					t.Errorf("nothing is %s: %v", want, seen)
				}
			}
			if len(seen) != len(c.want) {
				t.Errorf("statuses %v, want %v", seen, c.want)
			}
			r.restart()
			r.compare(p)
		})
	}
}

func fitted(c config.Condenser) config.Condenser {
	c.LLMConfig = "cheap"
	return c
}

func observing() config.Tenant {
	return config.Tenant{Name: "watched", Observe: new(true), APIKeys: []config.APIKey{{Env: "KEY", Value: "client-key"}}}
}

// TestViewOfForks checks views of forks, with changed system prompts and system messages in the middle.
func TestViewOfForks(t *testing.T) {
	r := start(t, nil)
	conversation := turns("ships", 15)
	main := r.grow(conversation, 2)
	r.compare(main)
	branch := append(conversation[:14:14], say("user", "Another question, please."))
	fork := r.ask(branch)
	if fork.thread == main.thread || fork.session != main.session {
		t.Fatalf("no fork: %+v of %+v", fork, main)
	}
	_, d := r.compare(fork)
	if threads := d.Events[1].Thread + " " + d.Events[len(d.Events)-1].Thread; threads != main.thread+" "+fork.thread {
		t.Errorf("events are of %s", threads)
	}
	branch[0] = say("system", "You help with ships, and it is midnight.")
	branch = append(branch, say("assistant", "Yes."), say("developer", "Be brief from now on."), say("user", "And now?"))
	again := r.ask(branch)
	if again.thread != fork.thread {
		t.Errorf("thread %s, it was %s", again.thread, fork.thread)
	}
	r.compare(again)
	branch = append(branch, say("assistant", "Still yes."), say("user", "And then?"))
	r.compare(r.ask(branch))
	second := append(slices.Clone(branch[:len(branch)-1]), say("user", "Or rather not?"))
	r.compare(r.ask(second)) // the system messages are in its parent's log
	r.get(main.url("/view"), new(any))
}

func TestCondensationsTellWhatTheyHid(t *testing.T) {
	r := start(t, func(c *config.Config) { // so cheap that summaries do not come from the request's own model
		cheap := c.Models[summariser]
		cheap.Price = model.Price{Input: 0.02, CachedInput: 0.02, Output: 0.08}
		c.Models[summariser] = cheap
	})
	conversation := turns("ships", 25)
	p := r.grow(conversation, 2)
	var list struct {
		Condensations []struct {
			Summary, Reason string
			RequestModel    string `json:"request_model"`
			Model           string
			Hidden          []struct{ From, To int }
			HiddenEvents    []struct{ Position int } `json:"hidden_events"`
			Usage           struct{ Input, Output int }
			Before, After   struct{ Tokens int }
		}
		Next int
	}
	r.get(p.url("/condensations"), &list)
	if len(list.Condensations) < 2 || list.Next != 0 {
		t.Fatalf("%d condensations, next %d", len(list.Condensations), list.Next)
	}
	hidden := []int{}
	for _, c := range list.Condensations {
		if c.Summary == "" || c.Reason != "events" || c.Model != summariser || c.RequestModel != agentModel || c.Usage.Input == 0 || c.After.Tokens >= c.Before.Tokens {
			t.Errorf("%+v", c)
		}
		for _, span := range c.Hidden {
			for p := span.From; p <= span.To; p++ {
				hidden = append(hidden, p)
			}
		}
		for i, e := range c.HiddenEvents {
			if at := hidden[len(hidden)-len(c.HiddenEvents)+i]; e.Position != at {
				t.Errorf("hidden event at %d, want %d", e.Position, at)
			}
		}
	}
	_, d := r.compare(p)
	for _, e := range d.Events {
		if slices.Contains(hidden, e.Position) != (e.Status == "forgotten") {
			t.Errorf("position %d is %s, hidden are %v", e.Position, e.Status, hidden)
		}
	}
	n := len(list.Condensations)
	r.get(p.url("/condensations?limit=1"), &list)
	if len(list.Condensations) != 1 || list.Next != 2 {
		t.Errorf("%d in a page of one of %d, next %d", len(list.Condensations), n, list.Next)
	}
}

func TestWithoutContent(t *testing.T) {
	r := start(t, func(c *config.Config) { c.Store.Content = false })
	p := r.grow(turns("ships", 15), 2)
	for _, path := range []string{"/view", "/diff"} {
		r.call(http.MethodGet, p.url(path)).fails(t, http.StatusConflict, "content_not_kept")
	}
	a := r.call(http.MethodGet, p.url("/events?content=true"))
	if a.StatusCode != http.StatusOK || strings.Contains(string(a.body), "and so on") || strings.Contains(string(a.body), `"message"`) {
		t.Errorf("events: %d %.300s", a.StatusCode, a.body)
	}
	var list struct{ Condensations []struct{ Summary string } }
	r.get(p.url("/condensations"), &list)
	if len(list.Condensations) == 0 {
		t.Error("no condensations")
	}
	r.get(p.url("/savings"), new(any))
}
