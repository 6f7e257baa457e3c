package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// obedient is a summariser that answers in the form that it is asked for.
type obedient struct{}

func (obedient) Summarise(_ context.Context, r condense.Request) (condense.Reply, error) {
	switch {
	case len(r.User)%7 == 0:
		return condense.Reply{}, errors.New("away")
	case r.Model == condense.CustomModel:
		return choice(r.User)
	case r.Function != nil:
		return condense.Reply{Arguments: `{"user_context":"build it","current_state":"fine","pr_created":false}`, Finish: "stop"}, nil
	case r.Format != nil:
		return condense.Reply{Text: `{"ids":[1,2,3,5,8,13]}`, Finish: "stop"}, nil
	}
	return condense.Reply{Text: "USER_CONTEXT: build it", Finish: "stop"}, nil
}

// choice answers a custom condenser's question: it hides the older half of the units that may go.
func choice(text string) (condense.Reply, error) {
	var question condense.Question
	if err := json.Unmarshal([]byte(text), &question); err != nil {
		return condense.Reply{}, err
	}
	answer := condense.Answer{Record: "USER_CONTEXT: build it"}
	units := slices.DeleteFunc(question.Units, func(u condense.Unit) bool { return u.State != condense.UnitMayGo })
	for _, u := range units[:len(units)/2] {
		for _, m := range u.Messages {
			if m.ID > 0 { // system messages have none
				answer.Hide = append(answer.Hide, m.ID)
			}
		}
	}
	reply, err := json.Marshal(answer)
	return condense.Reply{Text: string(reply), Finish: "stop"}, err
}

// counting counts everything that messages of generated histories contain.
type counting struct{ quarters }

func (counting) Counter(string) engine.Counter { return counting{} }

// calibrated counts in the same way, and learns.
type calibrated struct {
	counting
	tokenize.Calibration
}

func (c *calibrated) Observe(source string, counted, actual int, estimated bool) {
	c.Calibration.Observe(source, counted, actual, estimated)
}
func (c *calibrated) Adjust(source string, counted int) int {
	return c.Calibration.Adjust(source, counted)
}
func (c counting) Message(m session.Content) int {
	n := 4 + c.Text(m.Text) + c.Text(m.Reasoning) + 100*len(m.Files)
	for _, call := range m.Calls {
		n += c.Text(call.Name) + c.Text(call.Arguments)
	}
	return n
}

// upstreamCount returns the count of a server that knows only the body it received.
func upstreamCount(t rapid.TB, body []byte) int {
	var got struct {
		Messages []struct {
			Content   string
			Thinking  []struct{ Thinking string } `json:"thinking_blocks"`
			ToolCalls []struct {
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	quarter := func(s string) int { return (len(s) + 3) / 4 }
	n := 3
	for _, m := range got.Messages {
		n += 4 + quarter(m.Content)
		for _, block := range m.Thinking {
			n += quarter(block.Thinking)
		}
		for _, call := range m.ToolCalls {
			n += quarter(call.Function.Name) + quarter(call.Function.Arguments)
		}
	}
	return n
}

// TestCountsOfWhatWasSent: whatever condensers do to a history, its count is the count of what is forwarded.
func TestCountsOfWhatWasSent(t *testing.T) {
	quick.Alone(t)
	quick.Skip(t)
	types := uint64(len(catalogue.Types()) - 1) // without pipelines
	r := newRig(t, condense.Noop{})
	r.window = 6000
	run := func(name string, seed uint64, pick func([]condense.Condenser) condense.Condenser) {
		ended := false
		rapid.MakeFuzz(func(t *rapid.T) {
			r.tenant.Condenser = pick(condensetest.Every(t, obedient{}))
			g := condensetest.NewGenerator(t)
			for step := range rapid.IntRange(2, 5).Draw(t, "requests") {
				countedAsSent(t, r, fmt.Sprint(name, " step ", step), grown(t, g))
			}
			ended = true
		})(t, noise(seed))
		if !ended {
			t.Fatalf("%s did not come to its end", name)
		}
	}
	for i := range types {
		run(fmt.Sprint(i), i, func(all []condense.Condenser) condense.Condenser { return all[i] })
		for j := range types {
			if testing.Short() && (i+j)%3 != 0 { // a third of the pairs
				continue
			}
			run(fmt.Sprint(i, "-", j), 100+types*i+j, func(all []condense.Condenser) condense.Condenser {
				return condense.Pipeline{Stages: []condense.Condenser{all[i], all[j]}}
			})
		}
	}
}

// TestCountOfWhatIsStrippedLater: an answer that arrived while its history was being condensed is shown, and counted, without its sealed
// reasoning.
func TestCountOfWhatIsStrippedLater(t *testing.T) {
	asked, answer, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := newRig(t, condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10, KeepFirst: 1}, Summariser: waiting{asked, answer}, Model: "small",
	}))
	r.tenant.Deadline, r.late = time.Nanosecond, func(engine.Report) { close(over) }
	b := says(11)
	turn := r.begin(b, engine.WishNone)
	turn.Condense(t.Context())
	r.logged(turn)
	<-asked
	close(answer)
	<-over
	answered := `,{"role":"assistant","content":"Yes.","thinking_blocks":[{"type":"thinking","thinking":"` + strings.Repeat("Hm. ", 400) +
		`","signature":"s"}]},{"role":"user","content":"Go on."}]}`
	next := r.begin(&body{bytes: append(bytes.TrimSuffix(b.bytes, []byte("]}")), answered...)}, engine.WishNone)
	if bytes.Contains(forwarded(next), []byte("Hm.")) || len(next.Place().Thread.Condensations) != 1 {
		t.Fatalf("not condensed, or not stripped: %s", forwarded(next))
	}
	if got, want := next.Sent().Tokens, upstreamCount(t, forwarded(next)); got != want {
		t.Errorf("counted %d where upstream got %d", got, want)
	}
}

// waiting is a summariser that signals a call, and answers when the test lets it.
type waiting struct{ asked, answer chan struct{} }

func (w waiting) Summarise(context.Context, condense.Request) (condense.Reply, error) {
	close(w.asked)
	<-w.answer
	return condense.Reply{Text: "USER_CONTEXT: the sea", Finish: "stop"}, nil
}

// grown returns the client's next request.
func grown(t *rapid.T, g *condensetest.Generator) []session.Message {
	switch rapid.IntRange(0, 9).Draw(t, "client") {
	case 0:
		return g.Edit()
	case 1:
		return g.Fork()
	}
	return g.Grow(12)
}

// countedAsSent runs the turn of a request and checks its counts.
func countedAsSent(t *rapid.T, r *rig, name string, messages []session.Message) {
	raw := make([]string, len(messages))
	for i := range messages {
		raw[i] = thinking(&messages[i])
	}
	b := &body{bytes: []byte(`{"model":"m","messages":[` + strings.Join(raw, ",") + `]}`)}
	turn := r.begin(b, rapid.SampledFrom([]engine.Wish{engine.WishNone, engine.WishNone, engine.WishNow}).Draw(t, "wish"))
	check := func(when string) {
		got, want := turn.Sent().Tokens, upstreamCount(t, forwarded(turn))
		if off := got - want; max(off, -off)*100 > want {
			t.Fatalf("%s, %s: counted %d where upstream got %d", name, when, got, want)
		}
		if got, want := turn.Turn().Before().Tokens, upstreamCount(t, b.bytes); got != want {
			t.Fatalf("%s, %s: the client's history counted %d where it has %d", name, when, got, want)
		}
	}
	check("as the log has it")
	turn.Condense(context.Background())
	check("condensed")
	r.logged(turn)
	if rapid.IntRange(0, 3).Draw(t, "overflow") == 0 {
		turn.overflow(context.Background(), overflow.Overflow{})
		check("relieved")
	}
}

// thinking adds sealed reasoning to some of the assistant's messages, the same ones each time.
func thinking(m *session.Message) string {
	if m.Kind != session.Action && m.Kind != session.Agent || m.Digest[0]%3 > 0 {
		return string(m.Raw)
	}
	thought := strings.Repeat("so it goes ", 1+int(m.Digest[1]))
	return strings.TrimSuffix(string(m.Raw), "}") + `,"thinking_blocks":[{"type":"thinking","thinking":"` + thought + `","signature":"s"}]}`
}

// noise returns enough random bytes for one run.
func noise(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 4711))
	out := make([]byte, 256<<10)
	for i := 0; i < len(out); i += 8 {
		binary.LittleEndian.PutUint64(out[i:], r.Uint64())
	}
	return out
}
