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

func (Excerpts) Name() string { return "excerpts" }

// quoteShare is the part of the room for units and excerpts that is for excerpts, one in that many.
const quoteShare = 2

func (e Excerpts) Condense(in Input) Decision {
	j := &excerptsJob{job: e.job(e.Name(), in)}
	return j.decide(j, func() Kept { return j.shrink(j.quotes()) })
}

// excerptsJob is one condensation by excerpts.
type excerptsJob struct {
	job
	provisional bool // it stands for a summary that was due
}

// quotes is the room to set aside for what is quoted: half of what the target leaves besides what is kept in any case.
func (j *job) quotes() session.Size {
	room := j.wrapping()
	if j.due.Target.Tokens != unlimited {
		room = max(room, (j.due.Target.Tokens-j.picker(session.Size{Events: 1}).kept.Tokens)/quoteShare)
	}
	return session.Size{Events: 1, Tokens: room}
}

// wrapping is how many tokens a summary has without anything in it.
func (j *job) wrapping() int { return j.in.Count(record.Summary{}.String()) + messageOverhead }

func (j *excerptsJob) Plan() (session.Condensation, int) { return j.plain(j.cut), j.filled(0) }

// Run calls no model. Where all that is worth quoting leaves room, more of the newest units stay.
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

// quote completes a cut, which it takes: what is quoted fills the target, and is smaller than what is forgotten.
func (j *excerptsJob) quote(ctx context.Context, cut Cut) (c session.Condensation, err error) {
	err = j.in.work(ctx, func() error {
		s, err := j.read(ctx, cut, j.in.Count(record.Summary{}.String()))
		if err != nil {
			return fmt.Errorf("condense %s: %w", j.name, err)
		}
		text := s.recorded()
		if j.provisional {
			text = s.unsummarised()
		}
		made, smaller := j.complete(s, text)
		if !smaller {
			return fmt.Errorf("condense %s without a model: %d tokens, before %d", j.name, made.After.Tokens, made.Before.Tokens)
		}
		c, c.Provisional = made, j.provisional
		return nil
	})
	return c, err
}

// read reads what a cut forgets, which is then the job's. Where the user's words need more room than the target leaves next to a record of
// so many tokens, that is another cut, with fewer of the newest units.
func (j *job) read(ctx context.Context, cut Cut, record int) (*span, error) {
	j.cut = cut
	s, err := readSpan(ctx, j.in, cut)
	if err != nil || j.settled || j.due.Target.Tokens == unlimited {
		return s, err
	}
	room := j.room()
	more := s.words.Tokens(j.in.Count) - max(wordTokens, room-record)
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

// complete is the condensation with a record of what the cut forgets, and what stands next to that. It reports whether the view becomes
// smaller.
func (j *job) complete(s *span, text string) (c session.Condensation, smaller bool) {
	c = j.plain(j.cut)
	c.Summary = s.summary(j.in.Count, text, j.rooms())
	c.SummaryTokens = j.in.Count(c.Summary)
	c.After = j.cut.with(session.Size{Events: 1, Tokens: c.SummaryTokens + messageOverhead})
	return c, c.After.Tokens < c.Before.Tokens
}

// room is the tokens that a target leaves for what stands for the forgotten messages.
func (j *job) room() int {
	if j.due.Target.Tokens == unlimited {
		return unlimited
	}
	return j.due.Target.Tokens - (j.cut.After.Tokens - j.in.Fixed) - messageOverhead
}

// filled is about how many tokens stand for the forgotten messages, those of a record among them: excerpts fill the room that a target leaves.
func (j *job) filled(record int) int {
	room := j.room()
	if room == unlimited {
		words := 0
		if s, err := readSpan(context.Background(), j.in, j.cut); err == nil {
			words = min(s.words.Tokens(j.in.Count), max(wordTokens, s.tokens/typedShare))
		}
		room = record + words + min(eventTokens, j.cut.ForgottenTokens/eventShare)
	}
	return max(min(room, j.cut.gain()), 0)
}

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

// rooms is what the cut leaves for a record, so that enough goes, and that the view stays well below a limit, which is about twice the
// target. Where only events have to go, any gain in tokens will do.
func (j *job) rooms() room {
	r := room{j.room(), j.cut.gain()}
	if r.target != unlimited {
		r.end -= int(j.MinimumProgress * float64(j.cut.Before.Tokens))
	}
	if j.due.Tokens && (j.due.Need.Hard || j.due.Need.Reason != session.ReasonRequest) {
		r.end = min(r.end, r.target+j.due.Target.Tokens/2)
	}
	return r
}

// summary is a record with the user's own words, and with excerpts of what neither names as far as the target has room. Where
// there is not even room for a fifth of what is forgotten as the user's words, it is too long, since nothing may be forgotten without them.
func (s *span) summary(count func(string) int, text string, r room) string {
	sum := record.Summary{Record: text, Events: s.named}
	sum.Words = s.said(count, sum, r)
	if r.target == unlimited {
		r.target = count(sum.String()) + min(eventTokens, s.tokens/eventShare)
	}
	x := excerpt.New()
	for _, m := range s.history {
		x.Add(m)
	}
	x.Known(text + "\n" + sum.Words)
	sum.Excerpts = x.Text(min(r.target, r.end), func(lines string) int {
		if sum.Excerpts = lines; lines == "" {
			sum.Excerpts = "." // so that the wrapping counts
		}
		return count(sum.String())
	})
	return sum.String()
}

// said is the user's own words as they stand next to a record. A longer record leaves them less room, but never less than they need.
func (s *span) said(count func(string) int, sum record.Summary, r room) string {
	sum.Words = "." // so that the wrapping counts
	wrapped := count(sum.String())
	most, left := max(wordTokens, r.target-wrapped), r.end-wrapped
	if r.target == unlimited {
		most = max(wordTokens, s.tokens/typedShare)
	}
	least := min(wordTokens, max(s.tokens/printShare, minPrintTokens))
	if s.words.Fit(left, count) {
		most = min(most, left)
	} else {
		most = min(most, max(left, least))
	}
	return s.words.Text(most, least, count)
}
