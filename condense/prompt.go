package condense

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Default and minimum length of one event in a prompt, in runes.
const (
	DefaultEventLength = 10000
	minEventLength     = 200
)

// messageOverhead is the size of a message besides its text, in tokens.
const messageOverhead = 4

// tagged wraps data for a prompt. The data must be defused, so that it cannot close the tag.
func tagged(name, attributes, data string) string {
	return "<dewpoint_" + name + attributes + ">\n" + data + "</dewpoint_" + name + ">"
}

// event is a message to summarise.
type event struct {
	id      int // position in the history
	kind    session.Kind
	content session.Content
}

// prompt is the variable part of a summariser's prompt.
type prompt struct {
	previous string // the previous record in full, empty if there is none
	kept     string // messages that stay, which show what the events are about
	events   []event
	ask      string // the final instruction
	part     string // says which part of the events these are; empty: all of them
	ids      bool   // show the ids of events, for the answer to name

	budget    int              // maximum tokens of the prompt
	output    int              // maximum tokens of a record
	count     func(string) int // counts tokens
	cancelled func() bool      // the prompt is no longer needed, and further events are not rendered; nil: never
}

// Limits of a summary made in parts.
const (
	maxCalls      = 8    // calls of one job: the parts, the merge, and a second attempt
	partLength    = 2000 // runes to which events are cut before they are read in parts
	minPart       = 200  // minimum tokens for the record of a part
	maxConcurrent = 4    // parts that are read concurrently
)

// plan holds the prompts by which a span is read: one for all of it, or one per part.
type plan struct {
	prompt prompt // makes the texts
	texts  []string
	limit  int // runes to which each event was cut
	output int // maximum tokens of the record of a part
}

// plan fits the events into one prompt, cut to limit runes or less. Rather than cut them below partLength it reads them in
// parts, each in its own prompt, whose records a last call merges. If that takes too many calls, events are cut further. If
// even the shortest do not fit, those in the middle are left out, older ones first.
func (p prompt) plan(limit, calls int) (plan, error) {
	for {
		if text := p.text(p.render(limit)); p.count(text) <= p.budget {
			return plan{prompt: p, texts: []string{text}, limit: limit}, nil
		}
		output := p.partOutput(calls)
		switch {
		case limit > partLength:
			limit = max(limit/2, partLength)
		case output >= minPart:
			return p.split(limit, calls, output)
		case limit <= minEventLength:
			return p.drop()
		default:
			limit = max(limit/2, minEventLength)
		}
	}
}

// drop leaves out events in the middle. A quarter of the room is for the oldest events, which show the subject.
func (p prompt) drop() (plan, error) {
	rendered := p.render(minEventLength)
	room := p.budget - p.count(p.text([]string{p.omitted(0, len(rendered))}))
	head, tail := 0, len(rendered)
	used := 0
	size := func(i int) int { return p.count(rendered[i]) }
	for head < tail && used+size(head) <= room/4 {
		used += size(head)
		room -= size(head)
		head++
	}
	for tail > head && size(tail-1) <= room {
		tail--
		room -= size(tail)
	}
	if head == 0 && tail == len(rendered) {
		return plan{}, FaultTooLarge.errorf("window leaves %d tokens", p.budget)
	}
	text := p.text(slices.Concat(rendered[:head], []string{p.omitted(head, tail)}, rendered[tail:]))
	return plan{prompt: p, texts: []string{text}, limit: minEventLength}, nil
}

// partOutput returns the maximum length of the record of a part, so that all of them fit the last call's prompt. It returns
// 0 if there are too few calls for two parts and the merge.
func (p prompt) partOutput(calls int) int {
	if calls < 3 {
		return 0
	}
	room := p.budget - p.count(p.merge(nil))
	return min(p.output, room/(calls-1)-2*p.count("<dewpoint_part"+ofParts(1, 1)+">"))
}

// split plans as many parts as needed, at most all calls but one.
func (p prompt) split(limit, calls, output int) (plan, error) {
	groups := p.groups(limit)
	for len(groups) >= calls && limit > minEventLength {
		limit = max(limit/2, minEventLength)
		groups = p.groups(limit)
	}
	if len(groups) >= calls {
		groups = append(groups[:1:1], groups[len(groups)-calls+2:]...)
	}
	if len(groups) == 0 {
		return plan{}, FaultTooLarge.errorf("no event fits the window")
	}
	out := plan{prompt: p, limit: limit, output: output}
	end := 0 // of the events planned
	for n, g := range groups {
		text := append([]string{p.omitted(end, g.from)}, g.text...)
		if len(groups) > 1 {
			p.part = partNote(n+1, len(groups))
		}
		out.texts = append(out.texts, p.text(text))
		end = g.to
	}
	return out, nil
}

// group is a run of events that are read in one part.
type group struct {
	from, to int
	text     []string
}

// groups packs the events into as few prompts as possible. An event that does not fit a prompt of its own is left out.
func (p prompt) groups(limit int) []group {
	p.part = partNote(maxCalls, maxCalls)
	room := p.budget - p.count(p.text([]string{p.omitted(0, len(p.events))}))
	var groups []group
	used := room + 1 // so that the first event begins a group
	for i, text := range p.render(limit) {
		size := p.count(text) + 1
		if size > room {
			continue
		}
		if used+size > room {
			groups = append(groups, group{from: i})
			used = 0
		}
		g := &groups[len(groups)-1]
		g.text = append(g.text, text)
		g.to = i + 1
		used += size
	}
	return groups
}

// ofParts returns the attributes that number a part.
func ofParts(n, of int) string { return fmt.Sprintf(" n=\"%d\" of=\"%d\"", n, of) }

func partNote(n, of int) string {
	return fmt.Sprintf("These are part %d of %d of the events. Your record is for this part alone and will be merged "+
		"with those of the others: use the previous record to understand the events, and do not repeat it. ", n, of)
}

// merge returns the prompt that merges the records of the parts.
func (p prompt) merge(records []string) string {
	parts := ""
	for i, r := range records {
		parts += tagged("part", ofParts(i+1, len(records)), record.Defuse(r)+"\n") + "\n"
	}
	return p.history() + tagged("parts", "", parts) + "\n\nThe events were too many to be read at once. These are the records of their " +
		"parts, oldest first: where they differ, the later one is right. Merge them with the previous record, if there is one. " + p.ask
}

// readParts asks for the records of all parts and returns the prompt that merges them. It stops at the first failure. A
// panic in a part is raised again in the caller, which can recover from it: in the part's own goroutine it would end the
// process.
func (j *llmJob) readParts(ctx context.Context, pl plan) (string, error) {
	records := make([]string, len(pl.texts))
	parts, ctx := errgroup.WithContext(ctx)
	parts.SetLimit(maxConcurrent)
	for i, text := range pl.texts {
		parts.Go(func() (err error) {
			defer func() {
				if v := recover(); v != nil {
					err = panicked(fmt.Sprintf("%v\n%s", v, debug.Stack()))
				}
			}()
			records[i], err = j.readPart(ctx, text, pl.output)
			return err
		})
	}
	err := parts.Wait()
	if p, ok := errors.AsType[panicked](err); ok {
		panic(string(p))
	}
	return pl.prompt.merge(records), err
}

// panicked is the value and stack of a panic in a part.
type panicked string

func (p panicked) Error() string { return string(p) }

func (j *llmJob) readPart(ctx context.Context, text string, output int) (record string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	r := j.request(text)
	r.MaxOutput = output
	reply, err := j.call(ctx, r)
	if err == nil {
		record, err = j.form.record(reply)
	}
	if n := j.in.Count(record); n > output {
		err = FaultInflated.errorf("%d tokens, limit %d", n, output)
	}
	return record, err
}

func (p prompt) omitted(from, to int) string {
	if from == to {
		return ""
	}
	return fmt.Sprintf("[%d events left out for lack of room]\n", to-from)
}

func (p prompt) text(events []string) string {
	return p.history() + tagged("events", "", strings.Join(events, "")) + "\n\n" + p.part + p.ask
}

// history returns the previous record in full, and the messages that stay.
func (p prompt) history() string {
	text := ""
	if p.previous != "" {
		text = tagged("previous", "", record.Defuse(p.previous)+"\n") + "\n\n"
	}
	if p.kept != "" {
		text += tagged("kept", ` note="kept, for understanding only"`, p.kept) + "\n\n"
	}
	return text
}

// Limits of the messages that are shown although they stay.
const (
	keptHead   = 2    // from the beginning
	keptNewest = 4    // from the end
	keptLength = 1000 // runes of each
	keptShare  = 8    // of the prompt, one in that many
)

// kept returns the beginning and the newest exchange of the messages that stay, within a number of tokens: without the goal
// and the next step a model cannot tell what matters.
func (s *span) kept(budget int, count func(string) int) string {
	stay := slices.DeleteFunc(slices.Clone(s.history), func(m excerpt.Message) bool {
		return !m.Shown || m.Kind == session.System
	})
	if n := len(stay) - keptNewest; n > keptHead {
		stay = append(stay[:keptHead:keptHead], stay[n:]...)
	}
	for _, limit := range [...]int{keptLength, minEventLength} {
		var b strings.Builder
		for _, m := range stay {
			fmt.Fprintf(&b, "%s:\n%s\n", m.Kind, event{content: m.Content}.text(limit))
		}
		if text := b.String(); count(text) <= budget {
			return text
		}
	}
	return ""
}

func (p prompt) render(limit int) []string {
	out := make([]string, len(p.events))
	for i, e := range p.events {
		if p.cancelled != nil && p.cancelled() {
			break
		}
		attributes := fmt.Sprintf(" kind=\"%s\"", e.kind)
		if p.ids {
			attributes = fmt.Sprintf(" id=\"%d\"", e.id) + attributes
		}
		out[i] = tagged("event", attributes, e.text(limit)) + "\n"
	}
	return out
}

// text returns an event's text, calls and results, each cut so that all together have about limit runes.
func (e event) text(limit int) string {
	limit = max(limit/max(len(e.content.Calls)+1, 1), minEventLength)
	var b strings.Builder
	if e.content.Result != "" {
		answered := strings.TrimSpace(e.content.Result + " " + e.content.Name)
		b.WriteString("result of call " + shorten(answered, minEventLength) + "\n")
	}
	if e.content.Text != "" {
		b.WriteString(shorten(e.content.Text, limit) + "\n")
	}
	if marks := record.Attachments(e.content); marks != "" {
		b.WriteString(marks + "\n")
	}
	for _, c := range e.content.Calls {
		fmt.Fprintf(&b, "call %s: %s(%s)\n",
			shorten(c.ID, minEventLength), shorten(c.Name, minEventLength), shorten(c.Arguments, limit))
	}
	return record.Defuse(b.String())
}

// shorten cuts the middle out of a text, leaves limit runes of it, and says how many are missing.
func shorten(text string, limit int) string {
	missing := utf8.RuneCountInString(text) - limit
	if missing <= 0 {
		return text
	}
	head, tail := ends(text, limit)
	return fmt.Sprintf("%s\n[%d characters cut]\n%s", text[:head], missing, text[tail:])
}

// ends returns where the first runes of a text end and its last ones begin, limit of them in all. The text must have more.
func ends(text string, limit int) (head, tail int) {
	tail = len(text)
	for i := range limit {
		if i%2 == 0 {
			_, size := utf8.DecodeRuneInString(text[head:])
			head += size
		} else {
			_, size := utf8.DecodeLastRuneInString(text[:tail])
			tail -= size
		}
	}
	return head, tail
}
