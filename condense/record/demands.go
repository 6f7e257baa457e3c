package record

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Bounds of what is kept of the user's demands.
const (
	demandRunes  = 400     // of one sentence
	demandBytes  = 8 << 10 // of one message, half of them from its beginning and half from its end
	demandTyped  = 2 << 10 // of a message that somebody typed, and did not paste
	demandsTotal = 512     // sentences collected
	taskIDs      = 64      // ids collected
)

// Demands are the user's requirements and prohibitions in what is forgotten, and the ids of tasks. They are found by
// words, in the languages whose words are listed, and are a net below the summariser, not a judgement of meaning.
type Demands struct {
	sentences []demand
	said      int // sentences so far
	tasks     []string
}

type demand struct {
	id     int // of the event
	text   string
	order  int // in which it was said
	weight int // 2 if it says must or never, and not only keep or prefer; 1 more in a message short enough to be typed
}

// Forget takes in a message that is forgotten. Messages come oldest first.
func (d *Demands) Forget(id int, kind session.Kind, c session.Content) {
	switch kind {
	case session.User:
		text := typed(c.Text)
		d.read(id, text)
		d.findTasks(text, isTask)
	case session.Action:
		for _, call := range c.Calls {
			if containsAny(strings.ToLower(call.Name), []string{"task", "todo", "plan"}) {
				d.findTasks(Unescape(bound(call.Arguments)), func(string) bool { return true })
			}
		}
	}
}

// read collects the sentences of a user's message that demand something. The same one counts once, where it was said
// last.
func (d *Demands) read(id int, text string) {
	for _, s := range sentences(ends(text)) {
		strong, weak := demanding(s)
		if !strong && !weak || utf8.RuneCountInString(s) > demandRunes {
			continue
		}
		d.sentences = slices.DeleteFunc(d.sentences, func(old demand) bool { return old.text == s })
		d.said++
		weight := 0
		if strong {
			weight += 2
		}
		if len(text) <= demandTyped {
			weight++
		}
		d.sentences = append(d.sentences, demand{id: id, text: s, order: d.said, weight: weight})
	}
	if n := len(d.sentences); n > demandsTotal {
		d.sentences = d.sentences[n-demandsTotal:]
	}
}

// typed is a user's message without what agents put into it unasked: reminders, environments, what commands printed.
func typed(text string) string {
	for _, tag := range [...]string{"system-reminder", "environment_context", "env", "local-command-caveat", "local-command-stdout",
		"bash-stdout", "bash-stderr", "command-message"} {
		for {
			before, rest, found := strings.Cut(text, "<"+tag+">")
			if !found {
				break
			}
			_, after, _ := strings.Cut(rest, "</"+tag+">")
			text = before + "\n" + after
		}
	}
	return text
}

// ends leaves out the middle of a long text: what users paste is long, what they ask for stands around it.
func ends(text string) string {
	if len(text) <= demandBytes {
		return text
	}
	return strings.ToValidUTF8(text[:demandBytes/2]+"\n"+text[len(text)-demandBytes/2:], "")
}

// findTasks collects the ids in a text that are those of tasks.
func (d *Demands) findTasks(text string, task func(id string) bool) {
	scanTerms(ends(text), func(kind termKind, id string) {
		if kind == termID && len(d.tasks) < taskIDs && task(id) && !slices.Contains(d.tasks, id) {
			d.tasks = append(d.tasks, id)
		}
	})
}

// isTask tells ids of tasks from others in running text: ABC-123, #123 (longer ones are colours), and what calls itself
// a task.
func isTask(id string) bool {
	if strings.HasPrefix(id, "#") {
		return len(id) <= len("#99999")
	}
	return isTicket(id) || containsAny(strings.ToLower(id), []string{"task", "ticket", "issue"})
}

// Text lists what the record does not hold, within a number of tokens: prohibitions and musts before wishes, the newest
// first when there is no room for all, but in the order in which they were said. Empty if nothing is missing.
func (d *Demands) Text(record string, tokens int, count func(string) int) string {
	said := plainText(record)
	tasks := d.missingTasks(record)
	used := count(tasks) + 1
	if used > tokens {
		tasks, used = "", 0
	}
	var chosen []demand
	for _, s := range d.ranked() {
		if s.within(said) {
			continue
		}
		if cost := count(s.line()) + 1; used+cost <= tokens {
			chosen, used = append(chosen, s), used+cost
		}
	}
	slices.SortFunc(chosen, func(a, b demand) int { return a.order - b.order })
	var lines []string
	for _, s := range chosen {
		lines = append(lines, s.line())
	}
	if tasks != "" {
		lines = append(lines, tasks)
	}
	return strings.Join(lines, "\n")
}

func (s demand) line() string { return fmt.Sprintf("- [%d] \"%s\"", s.id, s.text) }

// within reports whether a plain text holds the sentence, or each of its clauses that demands something.
func (s demand) within(said string) bool {
	if strings.Contains(said, plainText(s.text)) {
		return true
	}
	held := false
	for _, clause := range strings.FieldsFunc(s.text, func(r rune) bool { return strings.ContainsRune(",;:，、；：", r) }) {
		if strong, weak := demanding(clause); !strong && !weak {
			continue
		}
		if !strings.Contains(said, plainText(clause)) {
			return false
		}
		held = true
	}
	return held
}

// ranked is the sentences, the weightiest first and of those the newest first.
func (d *Demands) ranked() []demand {
	out := slices.Clone(d.sentences)
	slices.SortFunc(out, func(a, b demand) int {
		if a.weight != b.weight {
			return b.weight - a.weight
		}
		return b.order - a.order
	})
	return out
}

func (d *Demands) missingTasks(record string) string {
	var missing []string
	for _, id := range d.tasks {
		if !strings.Contains(record, id) {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "- task ids: " + strings.Join(missing, ", ")
}

// plainText makes texts that differ only in case, white space, quotes and emphasis the same.
func plainText(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`*_“”‘’«».!。！", r)
	}), " ")
}

// sentences splits a text at line ends and at what ends sentences. Code blocks are left out.
func sentences(text string) []string {
	var out []string
	code := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		if code || line == "" {
			continue
		}
		out = append(out, lineSentences(strings.TrimLeft(line, "-*•>#0123456789.) \t"))...)
	}
	return out
}

func lineSentences(line string) []string {
	var out []string
	start := 0
	for i, r := range line {
		end := i + utf8.RuneLen(r)
		wide := strings.ContainsRune("。！？；", r)
		if !wide && (!strings.ContainsRune(".!?;", r) || end < len(line) && line[end] != ' ') {
			continue
		}
		out = append(out, line[start:end])
		start = end
	}
	out = append(out, line[start:])
	for i, s := range out {
		out[i] = strings.TrimRight(strings.TrimSpace(s), ";；")
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}
