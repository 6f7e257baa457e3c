package retention

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/recall"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// recallRoom is the tokens of an answer with lines, as the proxy gives it.
const recallRoom = 800

// hidden is what a view of a moment does not show as it was, as it is recalled.
func (m *moment) hidden(v *session.View) (events []recall.Event) {
	whole := m.show(v).whole
	for i := range m.at {
		if msg := &m.run.messages[i]; !whole[i] && msg.Kind != session.System {
			events = append(events, recall.NewEvent(recall.EventID(m.history.Pos(i), 0), msg.Kind, m.run.content(session.Item{Index: i, Raw: msg.Raw})))
		}
	}
	return events
}

// answered asks for a term, and gives the lines of the answer, without what stands before them.
func (m *moment) answered(t interface{ Fatalf(string, ...any) }, events []recall.Event, term string) (lines []string) {
	answer := recall.Lines(events, term, recall.Room{Tokens: recallRoom, Count: m.run.counter.Count})
	if n := m.run.counter.Count(answer); n > recallRoom {
		t.Fatalf("%s: the answer to %q has %d tokens", m.run.name, term, n)
	}
	for line := range strings.Lines(answer) {
		if _, text, is := strings.Cut(line, "] "); is && strings.HasPrefix(line, "[event ") {
			lines = append(lines, text)
		}
	}
	return lines
}

// everyTerm asks for each term that a view lost, and fails for one that is not in the first line of the answer.
func (m *moment) everyTerm(t interface{ Fatalf(string, ...any) }, v *session.View, limit int) (asked int) {
	s, events, known := m.show(v), m.hidden(v), map[string]bool{}
	for i := range slices.Backward(s.whole) {
		if s.whole[i] {
			continue
		}
		for _, ref := range references(m.run.texts[i]) {
			if known[ref] || asked == limit {
				continue
			}
			known[ref] = true
			if u, lost := m.use(ref); !lost {
				continue
			} else if kept, _ := m.seen(&u, s); kept {
				continue
			}
			asked++
			if got := m.answered(t, events, ref); len(got) == 0 || !recall.ContainsWord(got[0], ref) {
				t.Fatalf("%s: %q is lost and not found: %q", m.run.name, ref, got)
			}
		}
	}
	return asked
}

// TestEveryLostTermIsRecalled condenses drawn runs, and asks for all that the view lost.
func TestEveryLostTermIsRecalled(t *testing.T) {
	total := 0
	property.Check(t, func(t *rapid.T) {
		r, err := newRun(anyRun(t), wordCounter{})
		if err != nil {
			t.Fatal(err)
		}
		moments := r.actions(20)
		if len(moments) == 0 {
			return
		}
		m := moments[len(moments)-1]
		for _, c := range []condense.Condenser{
			condense.AmortizedForgetting{Settings: condense.Settings{MaxTokens: 60, KeepFirst: KeepFirst}}, condense.ObservationMasking{AttentionWindow: 3},
			condense.ToolOutputTrim{MaxEventLength: 40},
		} {
			v, _, err := m.settle(c, nil, 1<<30, nil)
			if err != nil {
				t.Fatal(err)
			}
			total += m.everyTerm(t, &v, 1<<30)
		}
	})
	if total < 20 {
		t.Errorf("only %d terms were lost", total)
	}
}

// found counts where lines stand that lost references come from, and among the first five also those of the newest message that has them.
type found struct{ lost, first, five, newest int }

// add asks for what an action uses and the view lost.
func (f *found) add(t *testing.T, m *moment, v *session.View) {
	s, events := m.show(v), m.hidden(v)
	for i := range m.used {
		u := &m.used[i]
		if kept, _ := m.seen(u, s); kept {
			continue
		}
		newest := use{text: u.text, where: u.where[len(u.where)-1:]}
		f.lost++
		answer := m.answered(t, events, u.text)
		answer = answer[:min(len(answer), 5)]
		among := func(lines []string, u *use) bool {
			return slices.ContainsFunc(lines, func(line string) bool {
				have := words(line)
				return slices.ContainsFunc(u.from(m), func(source map[string]int) bool { return survived(source, have) })
			})
		}
		f.first += one(among(answer[:min(len(answer), 1)], u))
		f.five += one(among(answer, u))
		f.newest += one(among(answer, &newest))
	}
}

// TestRecordedRecall condenses recorded runs from 32,000 tokens to 8,000, each time that they have grown so long again, asks for terms that
// the view lost, and, at each action, for what it uses of them.
func TestRecordedRecall(t *testing.T) {
	all, err := judge.Recorded()
	switch {
	case err != nil:
		t.Fatal(err)
	case len(all) == 0:
		t.Skip("SKIPPED: set " + judge.RunsVariable + " to a folder of recorded runs; drawn runs prove the same in this package")
	}
	counter, err := tokenize.New().Encoder(tokenize.O200k)
	if err != nil {
		t.Fatal(err)
	}
	const from, terms = 32000, 100
	c := condense.Excerpts{Settings: condense.Settings{MaxTokens: from / 2, KeepFirst: KeepFirst, MinimumProgress: 0.1}}
	var f found
	runs, actions, asked := 0, 0, 0
	for _, recorded := range all {
		r, err := newRun(recorded, counter)
		if err != nil {
			t.Fatal(err)
		}
		var log journal
		for n, m := range r.actions(from) {
			v := session.Project(m.history, log)
			if m.show(&v).tokens > from {
				if v, log, err = m.settle(c, log, 1<<30, nil); err != nil {
					t.Fatal(err)
				}
				asked += m.everyTerm(t, &v, terms)
			}
			f.add(t, m, &v)
			actions++
			runs += one(n == 0)
		}
	}
	t.Logf("%d runs, %d terms lost and found; %d actions use %d lost references: a line of theirs comes first for %.1f%%, among five for %.1f%%, the newest for %.1f%%",
		runs, asked, actions, f.lost, 100*float64(f.first)/float64(f.lost), 100*float64(f.five)/float64(f.lost), 100*float64(f.newest)/float64(f.lost))
	first, newest := 95, 88 // percent
	if judge.Sampled() {
		first, newest = 90, 80 // a few runs differ from all of them
	}
	if f.lost == 0 || asked == 0 || 100*f.first < first*f.lost || 100*f.newest < newest*f.lost {
		t.Errorf("of %d, %d lines come first, and %d of the newest among five", f.lost, f.first, f.newest)
	}
}
