package retention

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// moment is the time just before an action: a history, and what the action is about to use of it.
type moment struct {
	run       *run
	at        int // the action; the history is the messages before it
	total     int // tokens of the history
	history   *session.History
	units     []session.Unit
	head      []bool // messages at the beginning that every condenser keeps
	protected []bool // messages that no strategy may leave out: system, newest user message, last unit
	used      []use
	relied    []relied // statements on which the action's own rely
}

// use is a reference that the action uses and that occurred before, outside the head.
type use struct {
	text    string
	where   []int            // messages of the history in which it occurs
	memory  bool             // it is not in the latest exchange
	far     bool             // it is not in the newest farUnits units
	sources []map[string]int // words of the lines that name it; read when first asked for
}

// farUnits is how many units back a reference was named last that is told apart as one from far back.
const farUnits = 10

// moments gives the moments of a run that are measured: those with a history of at least minimum tokens, of which what no strategy may
// drop takes at most a share, and an action that counts; no more than limit, evenly spread.
func (r *run) moments(minimum int, share float64, limit int, counts func(*moment) bool) []*moment {
	return spread(slices.DeleteFunc(r.actions(max(minimum, 1)-1), func(m *moment) bool {
		return !counts(m) || float64(m.floor()) > share*float64(m.total)
	}), limit)
}

// refers reports whether the moment's action has references to the history.
func (m *moment) refers() bool { return len(m.used) > 0 }

// relies reports whether the moment's action has statements that rely on earlier ones.
func (m *moment) relies() bool { return len(m.relied) > 0 }

// actions are all moments of a run whose history has more than a number of tokens.
func (r *run) actions(tokens int) []*moment {
	var out []*moment
	total := 0
	for at := range r.messages {
		if total > tokens && r.messages[at].Kind.ByModel() {
			out = append(out, r.moment(at, total))
		}
		total += r.tokens[at]
	}
	return out
}

// spread takes limit of the moments, the first and the last among them.
func spread(all []*moment, limit int) []*moment {
	if len(all) <= limit {
		return all
	}
	out := make([]*moment, limit)
	for i := range out {
		out[i] = all[i*(len(all)-1)/max(limit-1, 1)]
	}
	return out
}

func (r *run) moment(at, total int) *moment {
	history := r.messages[:at]
	m := &moment{
		run: r, at: at, total: total, history: session.NewHistory(session.Hash{}, history), units: session.Units(history),
		head: make([]bool, at), protected: make([]bool, at),
	}
	m.protect()
	m.relied = m.rely()
	for _, reference := range references(r.texts[at]) {
		if u, ok := m.use(reference); ok {
			m.used = append(m.used, u)
		}
	}
	return m
}

func (m *moment) protect() {
	user := -1
	for i := range m.at {
		switch m.run.messages[i].Kind {
		case session.System:
			m.protected[i] = true
		case session.User:
			user = i
		}
	}
	first := 0 // messages so far that are no system messages
	for _, u := range m.units {
		for i := u.From; i < u.To; i++ {
			if m.run.messages[i].Kind != session.System {
				first++
			}
		}
		last := u.To == m.at || u.From <= user && user < u.To
		for i := u.From; i < u.To; i++ {
			m.protected[i] = m.protected[i] || last
			m.head[i] = first <= KeepFirst
		}
	}
}

// use looks up a reference. One that the head or a system message names cannot be lost, and does not count.
func (m *moment) use(text string) (use, bool) {
	u := use{text: text, memory: true, far: true}
	for _, i := range m.run.where(text) {
		switch {
		case i >= m.at:
			continue
		case m.lasts(i):
			return use{}, false
		}
		u.where = append(u.where, i)
		u.memory, u.far = u.memory && !m.protected[i], u.far && i < m.recent()
	}
	return u, len(u.where) > 0
}

// lasts reports whether every condenser keeps message i.
func (m *moment) lasts(i int) bool { return m.head[i] || m.run.messages[i].Kind == session.System }

// recent is the first message of the newest farUnits units.
func (m *moment) recent() int {
	if n := len(m.units); n > farUnits {
		return m.units[n-farUnits].From
	}
	return 0
}

// floor is the tokens of what every condenser shows.
func (m *moment) floor() int { return m.choose(true).tokens }

// maxSources bounds the lines of one reference that are compared.
const maxSources = 100

// from gives the words of the lines in which the reference occurred.
func (u *use) from(m *moment) []map[string]int {
	if u.sources != nil {
		return u.sources
	}
	var seen []string
	for _, i := range slices.Backward(u.where) {
		for _, line := range lines(m.run.texts[i], u.text) {
			if len(seen) < maxSources && !slices.Contains(seen, line) {
				seen = append(seen, line)
				u.sources = append(u.sources, words(line))
			}
		}
	}
	return u.sources
}
