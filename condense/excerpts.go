package condense

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Excerpts is the rolling condenser that needs no model: it keeps the head and the newest units, and quotes from the rest
// the user's own words and the lines that the agent is most likely to come back to. The quotes are chosen from the messages
// as the client sent them, never from an earlier record.
type Excerpts struct {
	Settings
}

func (Excerpts) Name() string { return "excerpts" }

// quoteShare is the percentage of the room for units and excerpts that is set aside for excerpts. By what actions come back to, a quoted line is
// worth more for its tokens than all but the newest units, which stay in any case.
const quoteShare = 80

func (e Excerpts) Condense(in Input) Decision {
	j := &excerptsJob{job: e.job(e.Name(), in)}
	return j.decide(j, func() Obstacle { return j.shrink(j.quoteRoom()) })
}

type excerptsJob struct {
	job
	provisional bool // it replaces a summary that was due
}

// quoteRoom returns the room to set aside for quotes: most of what the items that are always kept leave of the target.
func (j *job) quoteRoom() session.Size {
	room := j.wrapperTokens()
	if j.due.Target.Tokens != unlimited {
		room = max(room, (j.due.Target.Tokens-j.picker(session.Size{Events: 1}).kept.Tokens)*quoteShare/100)
	}
	return session.Size{Events: 1, Tokens: room}
}

// wrapperTokens returns the size of an empty summary.
func (j *job) wrapperTokens() int { return j.in.Count(record.Summary{}.String()) + messageOverhead }

func (j *excerptsJob) Plan() (session.Condensation, int) { return j.plain(j.cut), j.estimate(0) }

// Run calls no model. If everything worth quoting leaves room, more of the newest units stay.
func (j *excerptsJob) Run(ctx context.Context) (Result, error) {
	c, err := j.quote(ctx, j.cut)
	if err != nil || j.due.Target.Tokens == unlimited {
		return Result{Condensation: c}, err
	}
	fuller, ok := j.cutFor(session.Size{Events: 1, Tokens: c.SummaryTokens + messageOverhead})
	if ok && fuller.ForgottenTokens < j.cut.ForgottenTokens {
		if more, err := j.quote(ctx, fuller); err == nil {
			c = more
		}
	}
	return Result{Condensation: c}, nil
}

// quote makes a condensation of a cut, which becomes the job's. The quotes fill the target but are smaller than the cut.
func (j *excerptsJob) quote(ctx context.Context, cut Cut) (session.Condensation, error) {
	return inPool(ctx, &j.in, func() (c session.Condensation, err error) {
		s, err := j.readCut(ctx, cut, j.in.Count(record.Summary{}.String()))
		if err != nil {
			return c, fmt.Errorf("condense %s: %w", j.name, err)
		}
		text := s.previousRecord()
		if j.provisional {
			text = s.withNote(text)
		}
		c, enough := j.complete(s, text)
		if !enough {
			return session.Condensation{}, fmt.Errorf("condense %s without a model: %w: %d tokens, before %d",
				j.name, errUncut, c.After.Tokens, c.Before.Tokens)
		}
		c.Provisional = j.provisional
		return c, nil
	})
}

// withNote returns a record with a note of how many messages it is missing.
func (s *span) withNote(text string) string {
	return strings.TrimSpace(fmt.Sprintf("%s\n\n%s%d messages were removed without a summary.", text, noteMark, s.missing))
}

// replacedShare is the share of a history that is quoted in its replacement, one token in that many, but at least wordTokens.
const replacedShare = 4

// Replacement returns the summary of a whole view, except for its last item: the record that a model wrote and the user's own words. If no
// model did, it has the records in the view instead, and excerpts. It fails if there is nothing to replace, and with a *SummaryError if the
// model's record cannot be used.
func Replacement(ctx context.Context, in Input, written string) (string, error) {
	return inPool(ctx, &in, func() (string, error) {
		p, last := newPicker(&in, in.Measure(in.View.Items)), len(in.View.Items)
		p.pick(last-1, last)
		cut, ok := p.cut()
		s, err := readSpan(ctx, in, cut)
		room := max(wordTokens, in.Total/replacedShare)
		switch {
		case err != nil:
			return "", err
		case written != "":
			written, _, err = grounded(written, Handoff(), s.texts()...)
			if err != nil {
				return "", err
			}
			return record.Summary{Record: written, Words: s.words.Text(room, wordTokens, in.Count)}.String(), nil
		case !ok:
			return "", errUncut
		}
		text := s.withNote(strings.TrimSpace(s.carried() + "\n\n" + s.previousRecord()))
		room += in.Count(text)
		return s.summary(in.Count, text, summaryRoom{target: room, max: room}), nil
	})
}

// carried returns the newest record that the client sends back in a message. Of such messages only the excerpts are left to be quoted.
func (s *span) carried() (text string) {
	for i := range s.history {
		m := &s.history[i]
		if sum, ok := record.Carried(m.Content.Text); ok && m.Kind == session.User {
			text, m.Content.Text, m.Injected = sum.Record, sum.Excerpts, true
		}
	}
	return text
}

// readCut reads what a cut hides. The cut becomes the job's. If the user's words need more room than the target leaves next
// to a record of the given size, a cut with fewer of the newest units is taken instead.
func (j *job) readCut(ctx context.Context, cut Cut, recordTokens int) (*span, error) {
	j.cut = cut
	s, err := readSpan(ctx, j.in, cut)
	if err != nil || j.settled || j.due.Target.Tokens == unlimited {
		return s, err
	}
	room := j.targetRoom()
	more := s.words.Tokens(j.in.Count) - max(wordTokens, room-recordTokens)
	if more <= 0 {
		return s, nil
	}
	most := j.due.Target.Tokens - j.picker(session.Size{Events: 1}).kept.Tokens
	wider, ok := j.cutFor(session.Size{Events: 1, Tokens: min(room+more+messageOverhead, most)})
	if !ok || wider.ForgottenTokens <= cut.ForgottenTokens {
		return s, nil
	}
	j.cut = wider
	return readSpan(ctx, j.in, wider)
}

// complete adds a record and its quotes to the cut. It reports whether the view shrinks enough.
func (j *job) complete(s *span, text string) (c session.Condensation, enough bool) {
	c = j.plain(j.cut)
	if j.Recite {
		s.rules = s.standingRules(text, j.in.Count)
	}
	c.Summary = s.summary(j.in.Count, text, j.summaryRoom())
	c.SummaryTokens = j.in.Count(c.Summary)
	c.After = plus(j.cut.After, session.Size{Events: 1, Tokens: c.SummaryTokens + messageOverhead})
	return c, j.suffices(c.After)
}

// targetRoom returns the number of tokens that the target leaves for the summary, or unlimited.
func (j *job) targetRoom() int {
	if j.due.Target.Tokens == unlimited {
		return unlimited
	}
	return j.due.Target.Tokens - (j.cut.After.Tokens - j.in.Fixed) - messageOverhead
}

// estimate returns the approximate size of the summary: excerpts fill the room that the target leaves.
func (j *job) estimate(recordTokens int) int {
	room := j.targetRoom()
	if room == unlimited {
		words, hidden := 0, j.cut.ForgottenTokens
		if s, err := readSpan(context.Background(), j.in, j.cut); err == nil {
			words, hidden = min(s.words.Tokens(j.in.Count), max(wordTokens, s.tokens/typedShare)), s.tokens
		}
		room = recordTokens + words + min(eventTokens, hidden/eventShare)
	}
	return max(min(room, j.cut.maxSummary()), 0)
}

// Limits of the quotes next to a record, in tokens, or as a share of the hidden tokens, one in that many.
const (
	wordTokens = 2000 // maximum for the user's words, if the target leaves no more
	typedShare = 2    // for them if only the number of events has to shrink

	printShare     = 5 // for tool output in the user's name, together with the typed words, up to wordTokens
	minPrintTokens = 400

	eventTokens = 2000 // maximum for excerpts if only the number of events has to shrink
	eventShare  = 4
)

// summaryRoom limits the size of a record with all its quotes, in tokens.
type summaryRoom struct {
	target int // size that quotes fill up to; the user's words may exceed it. unlimited if only events count
	max    int // must never be exceeded
}

// summaryRoom returns the room for a summary that makes enough progress and keeps the view well below the limit, which is
// about twice the target. If only events have to shrink, any gain in tokens will do.
func (j *job) summaryRoom() summaryRoom {
	r := summaryRoom{target: j.targetRoom(), max: j.cut.maxSummary()}
	if r.target == unlimited {
		return r
	}
	r.max -= int(j.MinimumProgress * float64(j.cut.Before.Tokens))
	if j.due.Need.Hard || j.due.Need.Reason != session.ReasonRequest {
		r.max = min(r.max, r.target+j.due.Target.Tokens/2)
	}
	return r
}

// summary returns a record with the user's words, and with excerpts of what neither names as far as the target has room. It
// is too long if there is not even room for a fifth of the hidden tokens as user's words: nothing may be hidden without
// them.
func (s *span) summary(count func(string) int, text string, r summaryRoom) string {
	sum := record.Summary{Record: text, Rules: s.rules, Pinned: s.previous.Pinned, Events: s.hidden}
	sum.Words = s.userWords(count, sum, r)
	if r.target == unlimited {
		r.target = count(sum.String()) + min(eventTokens, s.tokens/eventShare)
	}
	x := excerpt.New()
	x.Focus(s.asked)
	for _, m := range s.history {
		x.Add(m)
	}
	x.AddShown(text + "\n" + sum.Words)
	sum.Excerpts = x.Text(min(r.target, r.max), func(lines string) int {
		sum.Excerpts = cmp.Or(lines, ".") // not empty, so that the tags around it count
		return count(sum.String())
	})
	return sum.String()
}

// userWords returns the user's words next to a record. A longer record leaves them less room, but never less than they need.
func (s *span) userWords(count func(string) int, sum record.Summary, r summaryRoom) string {
	sum.Words = "." // not empty, so that the tags around it count
	wrapped := count(sum.String())
	left := r.max - wrapped
	most := max(wordTokens, r.target-wrapped)
	if r.target == unlimited {
		most = max(wordTokens, s.tokens/typedShare)
	}
	least := min(wordTokens, max(s.tokens/printShare, minPrintTokens))
	if s.words.Fits(left, count) {
		most = min(most, left)
	} else {
		most = min(most, max(left, least))
	}
	return s.words.Text(most, least, count)
}
