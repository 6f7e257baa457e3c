package excerpt

import (
	"container/heap"
	"math"
	"slices"
	"strings"
)

// Text quotes the most valuable lines in the order of the history, each under its mark, so that count(text) is at most
// tokens. count may include text around the quotes. The result may be empty. Text may be called once.
func (x *Index) Text(tokens int, count func(string) int) string {
	empty := count("")
	tokens -= empty
	c := &chooser{Index: x, worth: x.worth(), limit: 4 * tokens}
	c.enqueue(span{0, len(c.lines)})
	best := ""
	for range maxAttempts {
		c.choose()
		text := c.text()
		n := count(text) - empty
		if n <= tokens && len(text) > len(best) {
			best = text
		}
		full := c.queue.Len() == 0 || 50*n >= 49*tokens
		if n <= 0 || n <= tokens && full {
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

// maxAttempts bounds how often Text counts a choice exactly.
const maxAttempts = 6

// chooser repeatedly takes the line whose new terms are worth most per token.
type chooser struct {
	*Index
	worth []int // by term
	queue candidates
	taken []int // indexes of lines, best first
	used  int   // estimate, in quarters of a token
	limit int
}

// Weights of what makes a term likely to be needed again.
const (
	agentFactor = 3    // for terms that the agent wrote
	askedFactor = 20   // for lines that have what the user asks for
	maxCounted  = 32   // messages that contain the term; more do not count
	countPower  = 0.7  // exponent of the number of messages that contain the term
	usePower    = -0.6 // exponent of the number of units since the agent wrote the term
	seenPower   = -0.4 // exponent of the number of units since the term was last seen
	unitWorth   = 1 << 12
)

// worth returns the value of quoting each term; 0 if the view has it. Integers make sums independent of their order.
func (x *Index) worth() []int {
	worth := make([]int, len(x.terms))
	for i := range x.terms {
		t := &x.terms[i]
		if t.known {
			continue
		}
		w := unitWorth * math.Pow(1+float64(min(t.messages, maxCounted)), countPower) *
			math.Pow(1+float64(x.unit-t.agentUnit), usePower) * math.Pow(1+float64(x.unit-t.lastUnit), seenPower)
		if t.agentUnit > 0 {
			w *= agentFactor
		}
		if t.number {
			w /= 4
		}
		if !t.narrow {
			w /= 2
		}
		if t.spoken {
			w *= x.dialogue()
		}
		if t.asked {
			w *= askedFactor
		}
		worth[i] = int(w) + 1
	}
	return worth
}

// dialogue returns how much of a dialogue the history is: the share of the agent's messages that it wrote to the user.
func (x *Index) dialogue() float64 { return float64(x.spoken) / float64(max(x.spoken+x.acted, 1)) }

// candidate is a line with its worth and cost when it was last evaluated.
type candidate struct {
	worth int
	cost  int
	line  int
}

// candidates is a heap with the highest worth per cost on top; among equals the newest line.
type candidates []candidate

func (c candidates) Len() int      { return len(c) }
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(v any)   { *c = append(*c, v.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}
func (c candidates) Less(i, j int) bool {
	a, b := c[i].worth*c[j].cost, c[j].worth*c[i].cost
	return a > b || a == b && c[i].line > c[j].line
}

// evaluate returns a line as a candidate. The cost includes the mark unless another line of the message was chosen.
func (c *chooser) evaluate(i int) candidate {
	l := &c.lines[i]
	out := candidate{cost: l.cost, line: i}
	for _, id := range c.termIDs[l.terms.from:l.terms.to] {
		out.worth += c.value(id, c.marks[l.mark].message)
	}
	if c.marks[l.mark].taken == 0 {
		out.cost += c.marks[l.mark].cost
	}
	return out
}

// datedShare is the share of a term's worth that a line has for it unless it is of the last message that contains the term, one in that many.
// What an earlier message says of it has often been replaced since: a file was read again, a test was run again.
const datedShare = 5

// value returns what a line of a message is worth for one of its terms.
func (c *chooser) value(id, message int) int {
	t, dated := &c.terms[id], c.worth[id]/datedShare
	switch newest := message == t.lastMessage; {
	case t.known, t.dated && !newest:
		return 0
	case t.dated:
		return c.worth[id] - dated
	case !newest:
		return dated
	}
	return c.worth[id]
}

// enqueue queues those of the given lines that are worth anything.
func (c *chooser) enqueue(lines span) {
	for i := lines.from; i < lines.to; i++ {
		if c.lines[i].excluded {
			continue
		}
		if v := c.evaluate(i); v.worth > 0 {
			heap.Push(&c.queue, v)
		}
	}
}

// maxSkipped is the maximum number of lines that are skipped for shorter ones because they exceed the remaining room.
const maxSkipped = 64

// choose takes lines until the limit is reached.
func (c *chooser) choose() {
	var skipped candidates
	for c.queue.Len() > 0 && c.used < c.limit && len(skipped) < maxSkipped {
		top := c.queue[0]
		if c.lines[top.line].excluded {
			heap.Pop(&c.queue)
			continue
		}
		now := c.evaluate(top.line)
		switch {
		case now.worth == 0:
			heap.Pop(&c.queue)
		case c.used+now.cost > c.limit:
			skipped = append(skipped, now)
			heap.Pop(&c.queue)
		case now.worth*top.cost < top.worth*now.cost:
			c.queue[0] = now
			heap.Fix(&c.queue, 0)
		default:
			heap.Pop(&c.queue)
			c.take(now)
		}
	}
	for _, v := range skipped {
		heap.Push(&c.queue, v)
	}
}

// take chooses a line. The first line of a message pays for the mark, which makes the others cheaper.
func (c *chooser) take(v candidate) {
	l := &c.lines[v.line]
	l.excluded = true
	c.taken = append(c.taken, v.line)
	c.used += v.cost
	m := &c.marks[l.mark]
	c.markKnown(l.terms, m.message)
	m.taken++
	if m.taken == 1 {
		c.markKnown(m.terms, m.message)
		c.enqueue(m.lines)
	}
}

// markKnown records that a line or a mark of a message was chosen.
func (c *chooser) markKnown(s span, message int) {
	for _, id := range c.termIDs[s.from:s.to] {
		t := &c.terms[id]
		t.known, t.dated = t.known || message == t.lastMessage, true
	}
}

// drop removes the lines chosen last until the limit is met.
func (c *chooser) drop() {
	for c.used > c.limit && len(c.taken) > 0 {
		l := &c.lines[c.taken[len(c.taken)-1]]
		c.taken = c.taken[:len(c.taken)-1]
		c.used -= l.cost
		m := &c.marks[l.mark]
		m.taken--
		if m.taken == 0 {
			c.used -= m.cost
		}
	}
}

// text returns the chosen lines under their marks. A mark without a line is left out if the same mark has a line elsewhere.
func (c *chooser) text() string {
	var b strings.Builder
	withLines := map[string]bool{} // marks that have a line
	for _, i := range c.taken {
		if l := &c.lines[i]; l.text != "" {
			withLines[c.marks[l.mark].text] = true
		}
	}
	last := ""
	for _, i := range slices.Sorted(slices.Values(c.taken)) {
		l := &c.lines[i]
		if l.text == "" && withLines[c.marks[l.mark].text] {
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
