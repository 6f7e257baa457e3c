package proxy

import (
	"context"
	"net/http"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// startLog writes the request's new messages to the log during the call upstream. The write ends before the client has its whole answer,
// so that the client's next request finds it. If it fails, the next request repairs it.
func (r *request) startLog() {
	if !r.form.Turn().Recognised() || r.form.Turn().Probes() || !r.server.reserve("append") {
		return
	}
	form, log := r.form.Log()
	r.adopt(form)
	r.server.write("append", func(ctx context.Context) error {
		wrote, err := log(ctx)
		if wrote && err == nil {
			r.server.degraded.writeOK()
		}
		return err
	})
}

// maxHold is how long the end of an answer is held back for the log. A write that takes longer goes on in the background. Requests
// of sub-agents and forks that follow from the answer may then arrive before it has ended, and begin sessions of their own.
const maxHold = time.Second

// markAnswer marks in the log what the client was sent, so that its next request is recognised, and settles what the request has paid.
// The relay calls it before it passes on the end of the answer, to which the client may refer at once.
func (r *request) markAnswer(tee dialect.Tee) {
	s := r.server
	begun := s.o.Now()
	defer func() { r.recorder.record.Times.LogWait = max(s.o.Now().Sub(begun), 1) }()
	var answer dialect.Answer
	if tee != nil {
		answer = tee.Answer()
	}
	if record := r.parsed.compaction.record; record != "" {
		answer.Text = record // the client sends its compaction item back, which is read as this text
	}
	echo := r.echo() // first, since it may answer hidden calls, which leads to another form
	mark := r.form.Answered(answer, echo)
	settle := r.settle(http.StatusOK, r.lastAnswer(answer))
	done := make(chan struct{})
	s.inBackground(func() {
		defer close(done)
		settle((*Server).atOnce)
		if err := mark(s.ctx); err != nil {
			s.degraded.writeFailed("mark answer", err)
		}
	})
	waitFor(done, maxHold)
}

// finish settles and records a request whose answer was relayed, in full or in part. answer is what the client was sent.
func (r *request) finish(l *relay, answer dialect.Answer) {
	status := l.resp.StatusCode
	r.settle(status, r.lastAnswer(answer))((*Server).inBackground)
	call := &r.recorder.record.Call
	if r.form.Turn().Recognised() && status == http.StatusOK {
		if r.hidden.rounds > 0 {
			call.Doubted = true // the usage is the sum of several calls
		} else if answer.Usage != nil {
			r.noteReport(r.form.Used(r.recorder.record.Turn.After.Tokens, *answer.Usage))
		}
		call.Usage = answer.Usage
		r.addToHoldout(answer.Usage)
	} else if status >= http.StatusBadRequest && !r.params.counts && r.form.Turn().Compared() && r.server.reserve("compare") {
		form := r.form
		r.server.write("compare", func(ctx context.Context) error { return form.CompareFailure(ctx) })
	}
	if status == http.StatusOK && r.params.dialect != nil && !r.params.counts {
		r.recorder.answer, r.recorder.price = &answer, r.parsed.model.Price
		if r.body != nil {
			r.recorder.bytes = len(r.body.bytes)
		}
	}
	r.recorder.record.Content = r.content(answer)
	r.recorder.endRelayed(status, answer.Failed, l.ended.unfinished(), l.end)
	r.addSavings()
}

// content returns what the request log shows of the conversation, nil unless the tenant has LogContent set.
func (r *request) content(answer dialect.Answer) *Content {
	if r.params.dialect == nil || r.recorder.record.Unread != "" || !r.tenant.LogContent {
		return nil
	}
	b := r.body
	for b.original != nil && b.original.coding == nil {
		b = b.original
	}
	c := &Content{Request: b.bytes, Answer: answer}
	if parts := r.forwarded(); len(parts) > 1 {
		c.Forwarded = parts
	}
	return c
}

// addSavings adds what the answered request saved to the sum of its thread.
func (r *request) addSavings() {
	turn, t := r.form, r.recorder.record.Turn
	if t == nil || !turn.Turn().Recognised() || t.Saved == (Saving{}) || !r.server.reserve("save") {
		return
	}
	more := session.Savings{
		Tokens: int64(t.Saved.Tokens), NotSent: model.Nano(t.Saved.NotSent), Rewritten: model.Nano(t.Saved.Rewritten),
	}
	if !r.parsed.model.Price.Known() {
		more.Unpriced = r.recorder.record.Model
	}
	r.server.write("save", func(ctx context.Context) error { return turn.Save(ctx, more) })
}

// addToHoldout adds the answered request to its tenant's comparison of condensed and held-out sessions, if the tenant has one.
func (r *request) addToHoldout(usage *session.Usage) {
	turn, price := r.form, r.parsed.model.Price
	if r.params.counts || !turn.Turn().Compared() {
		return
	}
	// The usage of several calls is a sum. It says nothing about one prompt, but it is what upstream bills, so that only the usage of a single call
	// can be doubted here.
	doubted := r.recorder.record.Call.Doubted && r.hidden.rounds == 0
	known := usage != nil && price.Known() && !doubted
	usd := 0.0
	if known {
		usd = price.Call(model.Usage(*usage))
	}
	if r.server.reserve("compare") {
		r.server.write("compare", func(ctx context.Context) error { return turn.Compare(ctx, usd, known) })
	}
}
