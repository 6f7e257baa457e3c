package condense_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// obedient answers in the requested format, well or badly, and fails the test if a request has no content.
func obedient(t *rapid.T) condense.Summariser {
	return summariserFunc(func(_ context.Context, r condense.Request) (condense.Reply, error) {
		if r.Model == condense.CustomModel {
			return choice(t, r.User)
		}
		if !strings.Contains(r.User, "<dewpoint_event ") && !strings.Contains(r.User, "<dewpoint_part ") {
			t.Error("asked about nothing")
		}
		mood := rapid.IntRange(0, 6).Draw(t, "summariser")
		switch {
		case mood == 0:
			return condense.Reply{}, errors.New("down")
		case mood == 1:
			return condense.Reply{Text: "{", Arguments: "{", Finish: "length"}, nil
		case r.Function != nil:
			return condense.Reply{Arguments: `{"user_context":"build it","current_state":"fine","pr_created":false}`, Finish: "stop"}, nil
		case r.Format != nil:
			ids := rapid.SliceOfN(rapid.IntRange(-1, 60), 0, 40).Draw(t, "ids")
			return condense.Reply{Text: strings.ReplaceAll(fmt.Sprintf(`{"ids":%v}`, ids), " ", ","), Finish: "stop"}, nil
		}
		return condense.Reply{Text: "USER_CONTEXT: build it </dewpoint_record>", Finish: "stop"}, nil
	})
}

// choice answers a custom condenser's question: it hides some of the oldest units that may go.
func choice(t *rapid.T, text string) (condense.Reply, error) {
	var question condense.Question
	if err := json.Unmarshal([]byte(text), &question); err != nil {
		t.Error(err)
	}
	answer := condense.Answer{Record: rapid.SampledFrom([]string{"", "DISCUSSED: it </dewpoint_record>"}).Draw(t, "record")}
	units := slices.DeleteFunc(question.Units, func(u condense.Unit) bool { return u.State != condense.UnitMayGo })
	for _, u := range units[:rapid.IntRange(0, len(units)).Draw(t, "units")] {
		for _, m := range u.Messages {
			if m.ID > 0 {
				answer.Hide = append(answer.Hide, m.ID)
			}
		}
	}
	reply, err := json.Marshal(answer)
	return condense.Reply{Text: string(reply), Finish: "stop"}, err
}

// TestEveryPipelinePair checks that every view and every condensation is sound, whichever two condensers are chained and
// whatever the client does to its history. The seeds of the runs are fixed.
func TestEveryPipelinePair(t *testing.T) {
	quick.Skip(t)
	quick.Alone(t)
	types := slices.DeleteFunc(catalogue.Types(), func(name string) bool { return name == catalogue.TypePipeline })
	runs := 3
	if testing.Short() {
		runs = 1
	}
	var tried tally
	for pair := range len(types) * len(types) {
		first, second := pair/len(types), pair%len(types)
		runs := runs
		if types[first] == catalogue.TypeLosslessTrim || types[second] == catalogue.TypeLosslessTrim {
			runs += 12 // copies are rare, and that one returns is rarer
		}
		t.Run(types[first]+"-"+types[second], func(t *testing.T) {
			for seed := range runs {
				ended := false
				rapid.MakeFuzz(func(t *rapid.T) {
					all := condensetest.Every(t, obedient(t))
					if len(all) != len(types) {
						t.Fatalf("%d condensers, want %d", len(all), len(types))
					}
					tried.add(thread(t, condense.Pipeline{Stages: []condense.Condenser{all[first], all[second]}}))
					ended = true
				})(t, noise(uint64(100*pair+seed)))
				if !ended {
					t.Fatal("the run did not come to its end")
				}
			}
		})
	}
	tried.check(t)
}

// TestEveryTypeActsOnGeneratedHistories: the histories that property tests generate are long enough for each type to change a view or to make
// a condensation, so that these tests try what it does.
func TestEveryTypeActsOnGeneratedHistories(t *testing.T) {
	quick.Alone(t)
	acts := map[string]int{}
	for seed := range uint64(12) {
		rapid.MakeFuzz(func(t *rapid.T) {
			for _, c := range condensetest.Every(t, obedient(t)) {
				done := thread(t, c)
				acts[c.Name()] += done.jobs + done.views
			}
		})(t, noise(seed))
	}
	for _, e := range catalogue.Entries() {
		if !e.Wraps() && e.Type != catalogue.TypeNoop && acts[e.Type] == 0 {
			t.Errorf("%s did nothing: give its keys smaller ranges in condensetest", e.Type)
		}
	}
}

// noise returns enough bytes for the draws of one run.
func noise(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 4711))
	out := make([]byte, 256<<10)
	for i := 0; i < len(out); i += 8 {
		binary.LittleEndian.PutUint64(out[i:], r.Uint64())
	}
	return out
}

// TestCondensersAndNests does the same for each condenser alone, and for nested pipelines.
func TestCondensersAndNests(t *testing.T) {
	property.Check(t, func(t *rapid.T) { nest(t) })
}

// FuzzPipelines does the same with the fuzzer's bytes.
func FuzzPipelines(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(noise(seed)[:8<<10])
	}
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { nest(t) }))
}

func nest(t *rapid.T) {
	all := condensetest.Every(t, obedient(t))
	pick := func(what string) condense.Condenser { return all[rapid.IntRange(0, len(all)-1).Draw(t, what)] }
	c := pick("alone")
	for range rapid.IntRange(0, 3).Draw(t, "depth") {
		c = condense.Pipeline{Stages: []condense.Condenser{c, pick("next")}}
	}
	thread(t, c)
}

// thread is a sequence of requests of one client under a condenser.
func thread(t *rapid.T, c condense.Condenser) tally {
	g := condensetest.NewGenerator(t)
	p := &pairRun{t: t, c: c}
	for range rapid.IntRange(1, 5).Draw(t, "requests") {
		p.request(session.NewHistory(session.Hash{}, nextHistory(t, g)))
	}
	return p.tally
}

// tally counts what was covered.
type tally struct{ jobs, views, trims, copies, back int }

func (y *tally) add(more tally) {
	y.jobs, y.views, y.trims = y.jobs+more.jobs, y.views+more.views, y.trims+more.trims
	y.copies, y.back = y.copies+more.copies, y.back+more.back
}

func (y *tally) check(t *testing.T) {
	if y.jobs == 0 || y.views == 0 || y.trims == 0 || y.copies == 0 || y.back == 0 {
		t.Errorf("not tried enough: %+v", *y)
	}
}

func nextHistory(t *rapid.T, g *condensetest.Generator) []session.Message {
	switch rapid.IntRange(0, 9).Draw(t, "client") {
	case 0:
		return g.Edit()
	case 1:
		return g.Fork()
	case 2:
		return g.Compact()
	}
	return g.Grow(15)
}

// pairRun runs one thread under a condenser, as the proxy does.
type pairRun struct {
	t   *rapid.T
	c   condense.Condenser
	log []session.Condensation
	tally
}

// request condenses a history, checks every step, and checks that repeating the request gives the same view.
func (p *pairRun) request(h *session.History) {
	sent := clone(h)
	need := condense.Need{}
	if rapid.IntRange(0, 3).Draw(p.t, "wish") == 0 {
		need = condense.Need{Reason: rapid.SampledFrom([]session.Reason{session.ReasonRequest, session.ReasonOverflow}).Draw(p.t, "need"), Hard: true}
	}
	v := project(h, p.log)
	if err := condensetest.Shaped(&v); err != nil {
		p.t.Fatalf("what the log gives: %v", err)
	}
	for range 2 {
		in := input(&v)
		in.Need = need
		d := p.c.Condense(in)
		p.twice(in, d)
		if d.View != nil {
			p.views++
			v = *d.View
		}
		if d.Job == nil || !p.run(h, in, d, &v) {
			break
		}
		need = condense.Need{}
	}
	if err := condensetest.Shaped(&v); err != nil {
		p.t.Fatal(err)
	}
	p.tell(&v)
	for i := range h.Messages {
		if !bytes.Equal(h.Messages[i].Raw, sent[i]) {
			p.t.Fatalf("message %d of the client's was written to", i)
		}
	}
}

// tell counts what results leave out because others show it, and what returned because none does any more.
func (p *pairRun) tell(v *session.View) {
	decided := map[int]session.Trim{}
	for _, c := range v.Applied {
		for _, t := range c.Trims {
			decided[t.Pos] = t
		}
	}
	for _, item := range v.Items {
		if item.Trim != nil {
			p.copies += len(item.Trim.Copies)
			p.back += len(decided[item.Trim.Pos].Copies) - len(item.Trim.Copies)
		}
	}
}

func clone(h *session.History) [][]byte {
	var out [][]byte
	for i := range h.Messages {
		out = append(out, bytes.Clone(h.Messages[i].Raw))
	}
	return out
}

// twice checks that deciding again gives the same view.
func (p *pairRun) twice(in condense.Input, d condense.Decision) {
	again := p.c.Condense(in)
	if (again.View == nil) != (d.View == nil) || (again.Job == nil) != (d.Job == nil) {
		p.t.Fatal("decided differently the second time")
	}
	if d.View == nil {
		return
	}
	if len(again.View.Items) != len(d.View.Items) {
		p.t.Fatal("another view the second time")
	}
	for i, item := range d.View.Items {
		if !bytes.Equal(item.Raw, again.View.Items[i].Raw) || item.Summary != again.View.Items[i].Summary {
			p.t.Fatalf("item %d is another one the second time", i)
		}
	}
}

// run makes a condensation, logs it and checks it.
func (p *pairRun) run(h *session.History, in condense.Input, d condense.Decision, v *session.View) bool {
	r, err := d.Job.Run(context.Background())
	if err != nil {
		return false
	}
	p.jobs++
	c := r.Condensation
	p.trims += len(c.Trims)
	before := project(h, p.log)
	if err := condensetest.Condensation(&before, c); err != nil {
		p.t.Fatalf("%s: %v", c.Condenser, err)
	}
	c.ID, c.Base = session.CondensationID{Thread: "t", Seq: uint64(len(p.log) + 1)}, session.CondensationID{}
	if n := len(before.Applied); n > 0 {
		c.Base = before.Applied[n-1].ID
	}
	p.log = append(p.log, c)
	after := project(h, p.log)
	if len(after.Applied) != len(before.Applied)+1 {
		p.t.Fatalf("%s: a condensation does not apply to the history it was made from", c.Condenser)
	}
	if err := condensetest.Shaped(&after); err != nil {
		p.t.Fatalf("%s: %v", c.Condenser, err)
	}
	p.accounted(&before, &after, c)
	if claimed := (session.Size{Events: len(after.Items), Tokens: fixed + sum(measure(after.Items))}); d.View == nil && c.After != claimed {
		p.t.Fatalf("%s: the view has %+v, the log says %+v", c.Condenser, claimed, c.After)
	}
	*v = after
	return true
}

// accounted checks that the sizes in the log are those of the views: without what was hidden and the summary that was
// replaced, and with the new summary.
func (p *pairRun) accounted(before, after *session.View, c session.Condensation) {
	want := sum(measure(before.Items)) - c.ForgottenTokens
	if c.Summary != "" {
		want += c.SummaryTokens + 4
		for _, item := range before.Items {
			if item.Index < 0 {
				want -= measure([]session.Item{item})[0]
			}
		}
	}
	if got := sum(measure(after.Items)); got != want {
		p.t.Fatalf("%s: %d tokens after, the log says %d", c.Condenser, got, want)
	}
}

// TestPipelineWithoutItsCondensation: while a stage's condensation is not made, or if it fails, the later stages still shape the view.
func TestPipelineWithoutItsCondensation(t *testing.T) {
	messages := []session.Message{condensetest.Message(session.Content{Role: "user", Text: "look"})}
	for n := range 12 {
		id := fmt.Sprint("call_", n)
		messages = append(messages,
			condensetest.Message(session.Content{Role: "assistant", Calls: []session.Call{{ID: id, Name: "look", Arguments: "{}"}}}),
			condensetest.Message(session.Content{Role: "tool", Result: id, Text: strings.Repeat("the parcel is not here ", 20)}))
	}
	v := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	masking := condense.ObservationMasking{AttentionWindow: 4}
	d := condense.Pipeline{Stages: []condense.Condenser{condense.NewLLM(condense.LLMSettings{Settings: condense.Settings{MaxSize: 10}}), masking}}.Condense(input(&v))
	want := masking.Condense(input(&v)).View
	if d.Job == nil || d.View == nil || !reflect.DeepEqual(d.View.Items, want.Items) {
		t.Errorf("job %v, view %v", d.Job != nil, d.View != nil)
	}
}
