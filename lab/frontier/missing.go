package frontier

import (
	"regexp"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

var (
	termForm  = regexp.MustCompile(`[A-Za-z0-9_./@-]{6,120}`)
	structure = regexp.MustCompile(`[/._@]|[a-z][A-Z]|[0-9]{4}`)
	escapes   = strings.NewReplacer(`\\n`, " ", `\\t`, " ", `\\r`, " ", `\\\"`, " ", `\n`, " ", `\t`, " ", `\r`, " ", `\"`, " ", `\\`, " ")
)

// terms returns the paths, names of code, ids and long numbers in a text.
func terms(text string) map[string]bool {
	found := map[string]bool{}
	for _, t := range termForm.FindAllString(escapes.Replace(text), -1) {
		if t = strings.Trim(t, "./-@_"); len(t) >= 6 && structure.MatchString(t) {
			found[t] = true
		}
	}
	return found
}

// rereadEvery is the number of steps in which a message is read again once.
const rereadEvery = 20

// memory counts what actions name and cannot see.
type memory struct {
	named, missed int
	rereadPrice   float64
	last          map[int]int // by message: the step at which it was last read again
	record        []byte
	recordLines   []string
}

// look counts what a step's action names that nothing in the view shows: not an original message, nor a line of the record that has at
// least half of the words of a line in which it was named last.
func (m *memory) look(r *Run, k int, v *session.View, b bill, p Prices) {
	s := r.steps[k]
	var shown []int
	for i := range v.Items {
		switch item := &v.Items[i]; {
		case item.Index < 0:
			if raw := r.raw(item); string(raw) != string(m.record) {
				m.record, m.recordLines = raw, lines(raw)
			}
		case v.Verbatim(item):
			shown = append(shown, item.Index)
		}
	}
	hidden := map[int]bool{}
	for t, at := range s.named {
		m.named++
		if r.shows(shown, t) || told(t, m.recordLines, r.messages[at].Raw) {
			continue
		}
		m.missed++
		hidden[at] = true
	}
	if m.last == nil {
		m.last = map[int]int{}
	}
	n := 0
	for at := range hidden {
		if last, again := m.last[at]; n == 2 || again && k-last < rereadEvery {
			continue
		}
		m.last[at] = k
		n++
		size := len(r.messages[at].Raw) / bytesPerToken
		m.rereadPrice += p.of(bill{total: b.total + size, cached: b.total}) + 80*p.Output
	}
}

// shows reports whether one of the shown messages names a term.
func (r *Run) shows(shown []int, term string) bool {
	for _, i := range shown {
		if r.terms[i][term] {
			return true
		}
	}
	return false
}

// told reports whether an added line has the term and at least half of the words of a line of the original that has it.
func told(term string, added []string, original []byte) bool {
	var from []map[string]bool
	for _, line := range added {
		if !strings.Contains(line, term) {
			continue
		}
		if from == nil {
			for _, l := range lines(original) {
				if strings.Contains(l, term) {
					from = append(from, words(l))
				}
			}
		}
		have := words(line)
		for _, want := range from {
			n := 0
			for w := range want {
				if have[w] {
					n++
				}
			}
			if 2*n >= len(want) {
				return true
			}
		}
	}
	return false
}

// words returns the words of a line, each once.
func words(line string) map[string]bool {
	found := map[string]bool{}
	for w := range strings.FieldsSeq(line) {
		found[w] = true
	}
	return found
}
