package retention

import (
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/recall"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// shown is what a strategy leaves to be seen at a moment.
type shown struct {
	whole  []bool   // messages as they were
	texts  []string // summaries, and messages of which only a part is left
	tokens int
}

// Counts sum up moments.
type Counts struct {
	Moments int
	Over    int     // moments at which the view was larger than the budget
	Share   float64 // of the history's tokens that the view had, added up over the moments

	Used, Kept       int // references used, and of them those to be seen
	Memory, Recalled int // the same for those that are not in the latest exchange
	Context          int // of Recalled: with at least half of the line they come from
	Far, FarRecalled int // the same as Memory for those last named more than ten units ago
	Relied, Stated   int // statements of the agent on which its own rely, not in the latest exchange, and of them those to be seen

	FarRelied, FarStated int // the same for those made more than ten units ago
}

// Add adds other counts.
func (c *Counts) Add(o Counts) {
	c.Moments += o.Moments
	c.Over += o.Over
	c.Share += o.Share
	c.Used += o.Used
	c.Kept += o.Kept
	c.Memory += o.Memory
	c.Recalled += o.Recalled
	c.Context += o.Context
	c.Far += o.Far
	c.FarRecalled += o.FarRecalled
	c.Relied += o.Relied
	c.Stated += o.Stated
	c.FarRelied += o.FarRelied
	c.FarStated += o.FarStated
}

// score counts what is left of the references that the moment's action uses.
func (m *moment) score(s shown, budget int) Counts {
	c := Counts{Moments: 1, Share: float64(s.tokens) / float64(m.total)}
	if s.tokens > budget {
		c.Over = 1
	}
	for i := range m.used {
		u := &m.used[i]
		kept, context := m.seen(u, s)
		c.Used++
		c.Kept += one(kept)
		if u.memory {
			c.Memory++
			c.Recalled += one(kept)
			c.Context += one(context)
		}
		if u.memory && u.far {
			c.Far++
			c.FarRecalled += one(kept)
		}
	}
	for i := range m.relied {
		stated := one(m.relied[i].stated(s))
		c.Relied++
		c.Stated += stated
		if m.relied[i].far {
			c.FarRelied++
			c.FarStated += stated
		}
	}
	return c
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// seen reports whether a reference is to be seen, and whether its line is.
func (m *moment) seen(u *use, s shown) (kept, context bool) {
	if slices.ContainsFunc(u.where, func(i int) bool { return s.whole[i] }) {
		return true, true
	}
	for _, text := range s.texts {
		for _, line := range lines(text, u.text) {
			kept = true
			have := words(line)
			for _, source := range u.from(m) {
				if survived(source, have) {
					return true, true
				}
			}
		}
	}
	return kept, false
}

// show reads a view.
func (m *moment) show(v *session.View) shown {
	s := shown{whole: make([]bool, m.at)}
	for _, item := range v.Items {
		switch {
		case item.Index < 0:
			s.texts = append(s.texts, item.Summary)
		case m.run.original(item):
			s.whole[item.Index] = true
		default:
			s.texts = append(s.texts, textOf(m.run.content(item)))
		}
	}
	for _, n := range m.run.measure(v.Items) {
		s.tokens += n
	}
	return s
}

// original reports whether an item is a message of the run as it was.
func (r *run) original(item session.Item) bool {
	own := r.messages[item.Index].Raw
	return item.Trim == nil && len(item.Raw) == len(own) && &item.Raw[0] == &own[0]
}

// content decodes an item.
func (r *run) content(item session.Item) session.Content {
	if item.Index < 0 {
		return session.Content{Role: "user", Text: item.Summary}
	}
	c, err := r.Read(item.Raw)
	if err != nil {
		return session.Content{Text: string(item.Raw)}
	}
	return c
}

// measure counts the tokens of items.
func (r *run) measure(items []session.Item) []int {
	out := make([]int, len(items))
	for i, item := range items {
		if item.Index >= 0 && r.original(item) {
			out[i] = r.tokens[item.Index]
		} else {
			out[i] = r.message(r.content(item))
		}
	}
	return out
}

// lines gives the lines of text that name a reference.
func lines(text, reference string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if recall.ContainsWord(line, reference) {
			out = append(out, line)
		}
	}
	return out
}

// words counts the words of a line.
func words(line string) map[string]int {
	out := map[string]int{}
	for _, w := range strings.FieldsFunc(line, func(r rune) bool { return !isWord(r) }) {
		out[w]++
	}
	return out
}

// survived reports whether at least half of a source line's words are in another line.
func survived(source, line map[string]int) bool {
	total, kept := 0, 0
	for w, n := range source {
		total += n
		kept += min(n, line[w])
	}
	return 2*kept >= total
}
