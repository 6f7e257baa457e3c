package excerpt

import (
	"container/heap"
	"math"
	"slices"
	"strings"
)

// Text quotes the lines that are worth most, each under the mark of its message, in the order of the history. What count says
// of it, which may be more than its own tokens, is at most tokens. It is empty if none is worth quoting or fits. An index gives one text.
func (x *Index) Text(tokens int, count func(string) int) string {
	empty := count("")
	tokens -= empty
	c := &chooser{Index: x, worth: x.worth(), limit: 4 * tokens}
	c.offer(span{0, len(c.lines)})
	best := ""
	for range attempts {
		c.take()
		text := c.text()
		n := count(text) - empty
		if n <= tokens && len(text) > len(best) {
			best = text
		}
		if n <= 0 || n <= tokens && (c.queue.Len() == 0 || 50*n >= 49*tokens) {
			break
		}
		c.limit = c.used * tokens / n
		if n > tokens {
			c.limit -= c.limit / 100
			c.drop()
		}
	}
	return best
}

// attempts bounds how often a choice is counted exactly.
const attempts = 6

// chooser takes the line with the most worth of new terms per token, again and again.
type chooser struct {
	*Index
	worth []int // of terms
	queue candidates
	taken []int // lines, the best first
	used  int   // quarters of tokens
	limit int
}

// What makes a term likely to be named again.
const (
	agentFactor = 3    // the agent wrote it, and did not only read it
	mostCounted = 32   // messages that name it
	countPower  = 0.7  // of the messages that name it
	usePower    = -0.6 // of the units since the agent wrote it
	seenPower   = -0.4 // of the units since it was last seen
	unitWorth   = 1 << 12
)

// worth is what it is worth to name each term that the view does not name, in whole numbers, so that sums do not depend on
// their order.
func (x *Index) worth() []int {
	out := make([]int, len(x.terms))
	for i := range x.terms {
		t := &x.terms[i]
		if t.told {
			continue
		}
		w := unitWorth * math.Pow(1+float64(min(t.messages, mostCounted)), countPower) *
			math.Pow(1+float64(x.unit-t.used), usePower) * math.Pow(1+float64(x.unit-t.last), seenPower)
		if t.used > 0 {
			w *= agentFactor
		}
		if t.number {
			w /= 4
		}
		if !t.narrow {
			w /= 2
		}
		out[i] = int(w) + 1
	}
	return out
}

// candidate is a line and what it was worth when it was last looked at.
type candidate struct {
	worth int
	cost  int
	line  int
}

type candidates []candidate

func (c candidates) Len() int           { return len(c) }
func (c candidates) Less(i, j int) bool { return c[i].before(c[j]) }
func (c candidates) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(v any)        { *c = append(*c, v.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// before reports whether a candidate is the better one; of two that are equal the newer is.
func (c candidate) before(o candidate) bool {
	a, b := c.worth*o.cost, o.worth*c.cost
	return a > b || a == b && c.line > o.line
}

// look gives a line as a candidate. Its mark counts where no other line of the message has been taken.
func (c *chooser) look(i int) candidate {
	l := &c.lines[i]
	out := candidate{cost: l.cost, line: i}
	for _, id := range c.named[l.terms.from:l.terms.to] {
		if !c.terms[id].told {
			out.worth += c.worth[id]
		}
	}
	if m := &c.marks[l.mark]; m.taken == 0 {
		out.cost += m.cost
	}
	return out
}

// offer queues those of some lines that are worth anything.
func (c *chooser) offer(lines span) {
	for i := lines.from; i < lines.to; i++ {
		if c.lines[i].gone {
			continue
		}
		if v := c.look(i); v.worth > 0 {
			heap.Push(&c.queue, v)
		}
	}
}

// mostAside is how many lines that are too long for the room that is left are passed over for shorter ones.
const mostAside = 64

// take takes lines until the limit is reached.
func (c *chooser) take() {
	var aside candidates
	for c.queue.Len() > 0 && c.used < c.limit && len(aside) < mostAside {
		top := c.queue[0]
		if c.lines[top.line].gone {
			heap.Pop(&c.queue)
			continue
		}
		now := c.look(top.line)
		switch {
		case now.worth == 0:
			heap.Pop(&c.queue)
		case c.used+now.cost > c.limit:
			aside = append(aside, now)
			heap.Pop(&c.queue)
		case now.worth*top.cost < top.worth*now.cost:
			c.queue[0] = now
			heap.Fix(&c.queue, 0)
		default:
			heap.Pop(&c.queue)
			c.quote(now)
		}
	}
	for _, v := range aside {
		heap.Push(&c.queue, v)
	}
}

// quote takes a line. The first of its message brings the mark, which makes the others cheaper.
func (c *chooser) quote(v candidate) {
	l := &c.lines[v.line]
	l.gone = true
	c.taken = append(c.taken, v.line)
	c.used += v.cost
	c.tell(l.terms)
	m := &c.marks[l.mark]
	if m.taken++; m.taken == 1 {
		c.tell(m.terms)
		c.offer(m.lines)
	}
}

func (c *chooser) tell(s span) {
	for _, id := range c.named[s.from:s.to] {
		c.terms[id].told = true
	}
}

// drop gives back the last lines taken, until the limit is met.
func (c *chooser) drop() {
	for c.used > c.limit && len(c.taken) > 0 {
		l := &c.lines[c.taken[len(c.taken)-1]]
		c.taken = c.taken[:len(c.taken)-1]
		c.used -= l.cost
		m := &c.marks[l.mark]
		if m.taken--; m.taken == 0 {
			c.used -= m.cost
		}
	}
}

// text is the lines taken. A mark that stands alone is left out where the same mark has a line below it.
func (c *chooser) text() string {
	var b strings.Builder
	last, told := "", map[string]bool{}
	for _, i := range c.taken {
		if l := &c.lines[i]; l.text != "" {
			told[c.marks[l.mark].text] = true
		}
	}
	for _, i := range slices.Sorted(slices.Values(c.taken)) {
		l := &c.lines[i]
		if l.text == "" && told[c.marks[l.mark].text] {
			continue
		}
		if m := c.marks[l.mark].String(); m != last {
			last = m
			b.WriteString(last + "\n")
		}
		if l.text != "" {
			b.WriteString(l.text + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
