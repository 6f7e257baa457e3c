package condense

import (
	"context"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Excerpts is the rolling condenser that needs no model: it keeps the head and the newest units, and quotes from all the
// rest the lines that the agent is most likely to come back to, and the user's own words. They are chosen from the messages as
// the client sent them, never from an earlier record.
type Excerpts struct {
	Settings
}

var _ Condenser = Excerpts{}

// Name implements Condenser.
func (Excerpts) Name() string { return "excerpts" }

// quoteShare is the part of the room for units and excerpts that is for excerpts, one in that many.
const quoteShare = 2

// Condense implements Condenser.
func (e Excerpts) Condense(in Input) Decision {
	due := e.Due(in)
	if due.Need.Reason == "" {
		return Decision{}
	}
	c, ok := e.Cut(in, due, session.Size{Events: 1, Tokens: e.room(in, due)})
	if !ok {
		return Decision{}
	}
	return Decision{Job: &excerptsJob{settings: e, in: in, due: due, cut: c}}
}

// room is the tokens set aside for what is quoted: half of what the target leaves besides what is kept in any case.
func (e Excerpts) room(in Input, due Due) int {
	wrapping := in.Count(record.Summary{}.String()) + messageOverhead
	if due.Target.Tokens == unlimited {
		return wrapping
	}
	return max(wrapping, (due.Target.Tokens-e.picker(in, session.Size{Events: 1}).kept.Tokens)/quoteShare)
}

// excerptsJob is one condensation by excerpts.
type excerptsJob struct {
	settings Excerpts
	in       Input
	due      Due
	cut      Cut
}

var _ Job = (*excerptsJob)(nil)

// Need implements Job.
func (j *excerptsJob) Need() Need { return j.due.Need }

// Run implements Job. It calls no model. Where all that is worth quoting leaves room, more of the newest units stay.
func (j *excerptsJob) Run(context.Context) (Result, error) {
	c, err := j.quote(j.cut)
	if err != nil || j.due.Target.Tokens == unlimited {
		return Result{Condensation: c}, err
	}
	fuller, ok := j.settings.Cut(j.in, j.due, session.Size{Events: 1, Tokens: c.SummaryTokens + messageOverhead})
	if ok && fuller.Tokens < j.cut.Tokens {
		if more, err := j.quote(fuller); err == nil {
			c = more
		}
	}
	return Result{Condensation: c}, nil
}

// quote completes a cut. What is quoted fills the target, and is smaller than what is forgotten.
func (j *excerptsJob) quote(cut Cut) (session.Condensation, error) {
	tokens := min(DefaultAllowance, cut.Tokens/2)
	if j.due.Target.Tokens != unlimited {
		tokens = j.due.Target.Tokens - (cut.Kept.Tokens - j.in.Fixed) - messageOverhead
	}
	tokens = min(tokens, cut.Before.Tokens-cut.Kept.Tokens-messageOverhead-1)
	c := cut.condensation(j.due.Need.Reason, j.settings.Name())
	c.Summary = readQuotes(j.in, cut).text(tokens)
	c.SummaryTokens = j.in.Count(c.Summary)
	c.After = cut.After(session.Size{Events: 1, Tokens: c.SummaryTokens + messageOverhead})
	if c.After.Tokens >= c.Before.Tokens {
		return session.Condensation{}, fmt.Errorf("condense %s: %d tokens, before %d", j.settings.Name(), c.After.Tokens, c.Before.Tokens)
	}
	return c, nil
}

// quotes is what may be quoted of what is forgotten.
type quotes struct {
	in     Input
	record string // of a model, which the view shows so far
	index  *excerpt.Index
	words  *record.Words
}

// readQuotes reads the history for what a cut and the condensations before it forget.
func readQuotes(in Input, c Cut) *quotes {
	q := &quotes{in: in, index: excerpt.New(), words: &record.Words{}}
	gone := in.View.Forgotten()
	for _, p := range c.Positions() {
		gone[p] = true
	}
	shown := map[int][]byte{}
	for _, item := range in.View.Items {
		switch {
		case item.Index < 0:
			q.record = record.Parse(item.Summary).Record
		case !gone[in.View.History.Pos(item.Index)]:
			shown[item.Index] = item.Raw
		}
	}
	for i := range in.View.History.Messages {
		m := &in.View.History.Messages[i]
		p := in.View.History.Pos(i)
		raw, stays := shown[i]
		if !stays {
			raw = m.Raw
		}
		content := read(in.Codec, raw)
		q.index.Add(excerpt.Message{Kind: m.Kind, Content: content, Shown: !gone[p]})
		if gone[p] {
			q.words.Forget(m.Kind, content)
		}
	}
	return q
}

// text is a record of no more than that many tokens: what a model recorded before, as far as that leaves room, the user's own
// words, and excerpts of the rest.
func (q *quotes) text(tokens int) string {
	s := record.Summary{Record: q.record}
	if q.in.Count(s.String()) > tokens/2 {
		s.Record = ""
	}
	s.Words = q.words.Text(min(wordTokens, tokens/wordShare), q.in.Count)
	q.index.Known(s.Record + "\n" + s.Words)
	s.Excerpts = q.index.Text(tokens, func(text string) int {
		if s.Excerpts = text; text == "" {
			s.Excerpts = "." // so that the wrapping counts
		}
		return q.in.Count(s.String())
	})
	return s.String()
}
