package condense

import (
	"context"
	"fmt"

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
		return Decision{Kept: due.Kept}
	}
	c, ok := e.cutFor(in, due)
	if !ok {
		return Decision{Kept: KeptUncut}
	}
	return Decision{Job: &excerptsJob{settings: e.Settings, name: e.Name(), in: in, due: due, cut: c}}
}

// cutFor is a cut that sets aside, for what is quoted, half of what the target leaves besides what is kept in any case.
func (e Excerpts) cutFor(in Input, due Due) (Cut, bool) {
	room := in.Count(record.Summary{}.String()) + messageOverhead
	if due.Target.Tokens != unlimited {
		room = max(room, (due.Target.Tokens-e.picker(in, due, session.Size{Events: 1}).kept.Tokens)/quoteShare)
	}
	return e.Cut(in, due, session.Size{Events: 1, Tokens: room})
}

// excerptsJob is one condensation by excerpts.
type excerptsJob struct {
	settings    Settings
	name        string // of the condenser
	in          Input
	due         Due
	cut         Cut
	provisional bool // it stands for a summary that was due
	settled     bool // the cut is to stay as it is
}

var _ Job = (*excerptsJob)(nil)

// Need implements Job.
func (j *excerptsJob) Need() Need { return j.due.Need }

// Asks implements Job.
func (j *excerptsJob) Asks() bool { return false }

// Plan implements Job.
func (j *excerptsJob) Plan() (session.Condensation, int) {
	return j.cut.condensation(j.due.Need.Reason, j.name), j.cut.filled(j.in, j.due, 0)
}

// Run implements Job. It calls no model. Where all that is worth quoting leaves room, more of the newest units stay.
func (j *excerptsJob) Run(ctx context.Context) (Result, error) {
	c, err := j.quote(ctx, j.cut)
	if err != nil || j.due.Target.Tokens == unlimited {
		return Result{Condensation: c}, err
	}
	fuller, ok := j.settings.Cut(j.in, j.due, session.Size{Events: 1, Tokens: c.SummaryTokens + messageOverhead})
	if ok && fuller.Tokens < j.cut.Tokens {
		if more, err := j.quote(ctx, fuller); err == nil {
			c = more
		}
	}
	return Result{Condensation: c}, nil
}

// quote completes a cut: what is quoted fills the target, and is smaller than what is forgotten.
func (j *excerptsJob) quote(ctx context.Context, cut Cut) (c session.Condensation, err error) {
	err = j.in.work(ctx, func() (err error) {
		c, err = j.quoted(ctx, cut)
		return err
	})
	return c, err
}

func (j *excerptsJob) quoted(ctx context.Context, cut Cut) (session.Condensation, error) {
	cut, s, err := j.read(ctx, cut, j.in.Count(record.Summary{}.String()))
	if err != nil {
		return session.Condensation{}, fmt.Errorf("condense %s: %w", j.name, err)
	}
	j.cut = cut
	text := s.recorded()
	if j.provisional {
		text = s.unsummarised()
	}
	c := cut.condensation(j.due.Need.Reason, j.name)
	c.Provisional = j.provisional
	c.Summary = s.summary(j.in, text, j.settings.rooms(&cut, j.in, j.due))
	c.SummaryTokens = j.in.Count(c.Summary)
	c.After = cut.After(session.Size{Events: 1, Tokens: c.SummaryTokens + messageOverhead})
	if c.After.Tokens >= c.Before.Tokens {
		return session.Condensation{}, fmt.Errorf("condense %s without a model: %d tokens, before %d", j.name, c.After.Tokens, c.Before.Tokens)
	}
	return c, nil
}

// read reads what a cut forgets. Where the user's words need more room than the target leaves next to a record of so many tokens, it is
// another cut, with fewer of the newest units.
func (j *excerptsJob) read(ctx context.Context, cut Cut, record int) (Cut, *span, error) {
	s, err := readSpan(ctx, j.in, cut)
	if err != nil || j.settled || j.due.Target.Tokens == unlimited {
		return cut, s, err
	}
	room := cut.room(j.in, j.due)
	more := s.words.Tokens(j.in.Count) - max(wordTokens, room-record)
	if more <= 0 {
		return cut, s, nil
	}
	most := j.due.Target.Tokens - j.settings.picker(j.in, j.due, session.Size{Events: 1}).kept.Tokens
	wider, ok := j.settings.Cut(j.in, j.due, session.Size{Events: 1, Tokens: min(room+more+messageOverhead, most)})
	if !ok || wider.Tokens <= cut.Tokens {
		return cut, s, nil
	}
	s, err = readSpan(ctx, j.in, wider)
	return wider, s, err
}

// room is the tokens that a target leaves for what stands for the forgotten messages.
func (c *Cut) room(in Input, due Due) int {
	if due.Target.Tokens == unlimited {
		return unlimited
	}
	return due.Target.Tokens - (c.Kept.Tokens - in.Fixed) - messageOverhead
}

// filled is about how many tokens stand for the forgotten messages, those of a record among them: excerpts fill the room that a target leaves.
func (c *Cut) filled(in Input, due Due, record int) int {
	room := c.room(in, due)
	if room == unlimited {
		words := 0
		if s, err := readSpan(context.Background(), in, *c); err == nil {
			words = min(s.words.Tokens(in.Count), max(wordTokens, s.tokens/typedShare))
		}
		room = record + words + min(eventTokens, c.Tokens/eventShare)
	}
	return max(min(room, c.gain()), 0)
}

// gain is the most tokens that may stand for the forgotten messages, so that the view is smaller without them.
func (c *Cut) gain() int { return c.Before.Tokens - c.Kept.Tokens - messageOverhead - 1 }

// Bounds of what stands next to a record, in tokens: the most, and a share of what is forgotten, one in that many.
const (
	wordTokens = 2000 // for the words of the user, if the target leaves no more
	typedShare = 2    // for them where only the number of events has to come down

	printShare     = 5 // for what was printed in the user's name, together with what was typed, up to wordTokens
	minPrintTokens = 400

	eventTokens = 2000 // for excerpts where only the number of events has to come down
	eventShare  = 4
)

// room is the tokens that a record with all that stands next to it may have.
type room struct {
	target int // as far as words and excerpts fill it; the words of the user may take more. unlimited where only events count
	end    int // what it must never exceed
}

// rooms is what a cut leaves for a record, so that enough goes, and that the view stays well below a limit, which is about twice the
// target. Where only events have to go, any gain in tokens will do.
func (s Settings) rooms(c *Cut, in Input, due Due) room {
	r := room{c.room(in, due), c.gain()}
	if r.target != unlimited {
		r.end -= int(s.MinimumProgress * float64(c.Before.Tokens))
	}
	if due.Tokens && (due.Need.Hard || due.Need.Reason != session.ReasonRequest) {
		r.end = min(r.end, r.target+due.Target.Tokens/2)
	}
	return r
}

// summary is a record with the user's own words, and with excerpts of what neither names as far as the target has room. Where
// there is not even room for a fifth of what is forgotten as the user's words, it is too long, since nothing may be forgotten without them.
func (s *span) summary(in Input, text string, r room) string {
	sum := record.Summary{Record: text, Events: s.named}
	sum.Words = s.said(in, sum, r)
	if r.target == unlimited {
		r.target = in.Count(sum.String()) + min(eventTokens, s.tokens/eventShare)
	}
	x := s.index()
	x.Known(text + "\n" + sum.Words)
	sum.Excerpts = x.Text(min(r.target, r.end), func(lines string) int {
		if sum.Excerpts = lines; lines == "" {
			sum.Excerpts = "." // so that the wrapping counts
		}
		return in.Count(sum.String())
	})
	return sum.String()
}

// said is the user's own words as they stand next to a record. A longer record leaves them less room, but never less than they need.
func (s *span) said(in Input, sum record.Summary, r room) string {
	sum.Words = "." // so that the wrapping counts
	wrapped := in.Count(sum.String())
	most, left := max(wordTokens, r.target-wrapped), r.end-wrapped
	if r.target == unlimited {
		most = max(wordTokens, s.tokens/typedShare)
	}
	least := min(wordTokens, max(s.tokens/printShare, minPrintTokens))
	if s.words.Fit(left, in.Count) {
		most = min(most, left)
	} else {
		most = min(most, max(left, least))
	}
	return s.words.Text(most, least, in.Count)
}
