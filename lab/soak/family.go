package soak

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// family is what a person would call one conversation: its main line, what was forked or edited off it, its sub-agents
// and side requests. It belongs to one agent.
type family struct {
	number int
	tenant *tenant
	author *author
	key    string // session key that its requests carry, empty if none
	naming naming // how they carry it
	lines  []*line
}

// naming is how requests name their session.
type naming int

const (
	unnamed  naming = iota // not at all: it is recognised by its content
	ownName                // by a header, with a name that no other family has
	sameName               // by a header, with a name that a family of each tenant has
	metadata               // in the body
	namings
)

// The kinds of lines.
const (
	lineMain = "main"
	lineFork = "forked off"
	lineEdit = "edited"
	lineSub  = "sub-agent"
	lineSide = "title request"
)

// line is one history as its client holds it.
type line struct {
	family   *family
	kind     string
	number   int
	header   http.Header
	metadata string
	stream   bool
	messages []json.RawMessage
	pending  []call   // of the last answer: their results come next
	final    string   // text of the last answer
	wish     string   // X-Dewpoint-Condense of the next request
	edited   [][]byte // tool results as they were before they were changed: a record of them holds on

	placed []placement
	last   *exchange // served last
}

// placement is where the proxy said that a request belongs.
type placement struct {
	exchange        string
	session, thread string
	from, to        time.Time
	lost            bool // a replica was killed during it, or it was forwarded without the store
	prompt          bool // there was but a first prompt, which came again since the client could not use its whole answer
}

func (l *line) name() string {
	return fmt.Sprintf("%s, family %d, %s line %d", l.family.tenant.name, l.family.number, l.kind, l.number)
}

func (l *line) add(m ...message) {
	for _, one := range m {
		l.messages = append(l.messages, one.raw())
	}
}

// newLine begins a line that names its session as its family does.
func (f *family) newLine(kind string) *line {
	l := &line{family: f, kind: kind, number: len(f.lines), header: http.Header{}, stream: f.author.chance.IntN(3) > 0}
	switch f.naming {
	case ownName:
		l.header.Set("X-Dewpoint-Session", f.key)
	case sameName:
		l.header.Set("X-Session-Id", f.key)
	case metadata:
		l.metadata = f.key
	}
	f.lines = append(f.lines, l)
	return l
}

// branch begins a line with the first messages of another.
func (f *family) branch(from *line, kind string, messages int) *line {
	l := f.newLine(kind)
	l.messages, l.edited = slices.Clone(from.messages[:messages]), from.edited
	return l
}

// newFamily makes a family with its first line. Every eighth pair of families, in different tenants, begins with one and
// the same history.
func newFamily(number int, tenants []*tenant, seed uint64) *family {
	chance := rand.New(rand.NewPCG(seed, uint64(number)))
	t := tenants[number%len(tenants)]
	f := &family{
		number: number, tenant: t, naming: naming(number / 2 % int(namings)),
		author: &author{tenant: t.number, family: number, chance: chance},
	}
	switch f.naming {
	case ownName, metadata:
		f.key = fmt.Sprintf("run-%d", number)
	case sameName:
		f.key = fmt.Sprintf("chat-%d", number/len(tenants))
	}
	l := f.newLine(lineMain)
	if pair := number / 2; pair%8 == 0 {
		l.begin(&author{tenant: shared, family: pair, chance: rand.New(rand.NewPCG(seed, uint64(pair)|1<<40))}, 4)
	} else {
		l.begin(f.author, 0)
	}
	return f
}

// begin gives a line its system prompt, and the first rounds of a history that it did not get from this proxy.
func (l *line) begin(by *author, rounds int) {
	l.add(text("system", "You are a careful agent. "+by.text(3)))
	if rounds == 0 {
		return
	}
	l.add(text("user", by.text(4)))
	for round := range rounds {
		calls := by.calls(1+round%2, "h", false)
		l.add(message{Role: "assistant", ToolCalls: calls})
		for _, c := range calls {
			l.add(message{Role: "tool", ToolCallID: c.ID, Content: ptr(by.text(3))})
		}
	}
	l.add(text("assistant", by.text(2)))
}

func ptr(s string) *string { return &s }

// calls makes tool calls. The suffix makes their ids differ between attempts.
func (a *author) calls(n int, suffix string, delegating bool) []call {
	out := make([]call, n)
	for i := range out {
		m := a.mark()
		name := []string{toolRead, toolExec}[i%2]
		if delegating && i == 0 {
			name = toolDelegate
		}
		arguments := encode(map[string]string{"text": a.text(2)})
		id := fmt.Sprintf("call_%d_%d_%d_%s", m.Tenant, m.Family, m.Number, suffix)
		out[i] = call{ID: id, Type: "function", Function: function{name, string(arguments)}}
	}
	return out
}
