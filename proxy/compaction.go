package proxy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/engine/lessons"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Compacts says whether an upstream compacts histories into items of its own.
type Compacts int

// The values of Compacts.
const (
	CompactsPerhaps Compacts = iota // not known yet: upstream is tried
	CompactsItself
	CompactsNot // the proxy compacts instead
)

// compaction is what a request asks for about the compaction of its history.
type compaction struct {
	wanted   bool   // the client asks for a compaction
	streamed bool   // the client asks for a stream
	ours     bool   // the proxy makes it: upstream's model is asked to write a record of the history
	record   string // the record that the client was given
	managed  bool   // upstream turned out not to manage the history

	dialect.ContextManagement // what the client asked upstream to manage, which the proxy does instead
}

const maxReadAnswer = 8 << 20 // bytes of an answer that is read as a whole

// compactor returns the request's dialect if clients can ask for compactions in it, otherwise nil.
func (r *accepted) compactor() dialect.Compactor {
	d, _ := r.params.dialect.(dialect.Compactor)
	return d
}

// prepareCompaction rewrites the body where the proxy compacts or manages the history in place of upstream, and opens compaction items that
// the proxy made.
func (r *request) prepareCompaction() error {
	d := r.compactor()
	if d == nil {
		return nil
	}
	r.takeOverManaging(d)
	if !r.params.compact && !rawjson.MayHold(r.body.bytes, "compaction") {
		return nil // like most bodies, it neither asks for a compaction nor holds one
	}
	if err := r.unseal(d); err != nil {
		return err
	}
	c := &r.parsed.compaction
	if c.ours {
		return nil
	}
	c.Model, c.wanted = d.RequestsCompaction(r.body.bytes, r.params.compact)
	if c.wanted && r.ability(lessons.Compacts, c.Model) == CompactsNot {
		r.askForRecord(d)
	}
	return nil
}

// takeOverManaging removes the request to manage the history from the body if upstream is known not to do it. A limit that came with it
// becomes a limit for condensing.
func (r *request) takeOverManaging(d dialect.Compactor) {
	if r.upstream.Compacts != CompactsNot && r.server.o.Engine.Lessons().Empty(lessons.Manages) {
		return
	}
	m := d.StripManagement(r.body.bytes)
	if m.Rest != nil && r.ability(lessons.Manages, m.Model) == CompactsNot {
		r.body.replace(m.Rest)
		r.parsed.compaction.ContextManagement = m
	}
}

// unseal replaces the compaction items in the body by the text that the proxy sealed in them. Upstream does not know these items, so one
// that cannot be opened is an error. If all are upstream's, the body as it came is still what is sent, unless it is condensed.
func (r *request) unseal(d dialect.Compactor) error {
	ours := rawjson.MayHold(r.body.bytes, engine.SealedMark)
	text, err := d.Unseal(r.body.bytes, engine.SealedMark, func(sealed string) (string, error) {
		ours = true
		return r.server.o.Engine.Unseal(r.ctx, r.tenant.Name, sealed)
	})
	switch {
	case err == nil && !ours:
		r.body = r.body.rephrased(text)
		return nil
	case err == nil:
		r.body.replace(text)
		return nil
	case errors.Is(err, engine.ErrForeign), errors.Is(err, engine.ErrOldKey):
		r.recorder.record.Condensed.Compaction = CompactionRefused
		e := badRequest("invalid_compaction",
			"A compaction item cannot be opened: "+err.Error()+". Leave the item out and send the history, or start a new conversation.")
		e.Param = "input"
		return e
	case r.ctx.Err() != nil:
		return upstreamError(r.ctx, err)
	}
	r.server.degraded.readFailed(err)
	return errCompactionUnavailable
}

// askForRecord rewrites the request for a compaction into one for a record of the history, which any model can write.
func (r *request) askForRecord(d dialect.Compactor) {
	c := &r.parsed.compaction
	question := condense.Handoff()
	if strings.TrimSpace(c.Instructions) != "" {
		question += "\n\n" + c.Instructions
	}
	var body []byte
	body, c.streamed = d.Ask(r.body.bytes, question)
	r.body.replace(body)
	c.ours = true
}

// ability returns what is configured for upstream, or else remembered of it. Requests of a tenant that only observes are not rewritten.
func (r *accepted) ability(kind lessons.Kind, model string) Compacts {
	if r.tenant.Observe {
		return CompactsItself
	}
	if set := r.upstream.Compacts; set != CompactsPerhaps {
		return set
	}
	shown, known := r.server.o.Engine.Lessons().Known(kind, r.lessons(model))
	switch {
	case !known:
		return CompactsPerhaps
	case shown:
		return CompactsItself
	}
	return CompactsNot
}

// lessons returns the place under which the engine remembers what upstream has shown this client, and later all clients of the tenant.
func (r *accepted) lessons(model string) lessons.Place {
	return lessons.PlaceOf(r.tenant.Name, r.params.credentials, r.upstream.BaseURL.String(), model, r.params.keys)
}

// learn remembers whether upstream has just shown an ability.
func (r *accepted) learn(ability lessons.Kind, model string, shown bool) {
	r.server.o.Engine.Lessons().Learn(ability, r.lessons(model), shown)
}

// refusesToManage reports whether upstream refused the request because it does not manage histories, and remembers that. It does so once a
// request.
func (r *request) refusesToManage(why overflow.Refusal) bool {
	d := r.compactor()
	if !why.Manages || d == nil || r.parsed.compaction.managed {
		return false
	}
	m := d.StripManagement(r.body.bytes)
	if m.Rest == nil || r.ability(lessons.Manages, m.Model) == CompactsItself {
		return false
	}
	r.learn(lessons.Manages, m.Model, false)
	r.parsed.compaction.managed = true
	return true
}

// answer takes a recognised request to the answer that its client gets. A compaction is given only as a whole.
func (r *request) answer() (resp answer, err error) {
	if err := r.pauseToCompact(); err != nil {
		return answer{}, err
	}
	c := &r.parsed.compaction
	if !c.wanted || r.ability(lessons.Compacts, c.Model) == CompactsItself {
		return r.exchangeManaged()
	}
	r.withKeepAlive(func() { resp, err = r.exchangeCompaction() })
	if c.ours && c.record == "" {
		r.recorder.record.Condensed.Compaction = CompactionFailed
	}
	return resp, err
}

// pauseToCompact asks for a record if the history is longer than its client allows and upstream would have answered with a compaction alone.
func (r *request) pauseToCompact() error {
	c := &r.parsed.compaction
	if !c.Pauses || c.wanted || !r.form.Exceeds(c.Limit) {
		return nil
	}
	c.wanted = true
	r.askForRecord(r.compactor())
	return r.recognise()
}

// exchangeManaged is exchange, repeated without the request to manage the history if upstream refused that.
func (r *request) exchangeManaged() (answer, error) {
	resp, err := r.exchange()
	if err == nil && r.parsed.compaction.managed {
		resp, err = r.restart(resp)
	}
	return resp, err
}

// restart drops an answer, recognises the changed body and sends it.
func (r *request) restart(resp answer) (answer, error) {
	_ = resp.Body.Close()
	r.endUnanswered() // this turn is over: the changed body begins another one
	r.recorder.record.Unread = ""
	if err := r.recognise(); err != nil {
		return answer{}, err
	}
	return r.exchange()
}

// exchangeCompaction returns the compaction that the client asked for: upstream's, or if upstream makes none, one of ours.
func (r *request) exchangeCompaction() (answer, error) {
	resp, err := r.exchangeManaged()
	if err != nil {
		return answer{}, err
	}
	d := r.compactor()
	if !r.parsed.compaction.ours {
		if !r.failsToCompact(resp.Response, d) {
			return resp, nil
		}
		r.askForRecord(d)
		if resp, err = r.restart(resp); err != nil {
			return answer{}, err
		}
	}
	return r.sealRecord(resp, d)
}

// failsToCompact reports whether an answer shows that upstream does not compact histories, and remembers what it shows.
func (r *request) failsToCompact(resp *http.Response, d dialect.Compactor) bool {
	ok := resp.StatusCode == http.StatusOK
	if !ok && !(overflow.Refusal{Status: resp.StatusCode}).Objects() && resp.StatusCode != http.StatusNotFound || len(codings(resp.Header)) > 0 {
		return false
	}
	model := r.parsed.compaction.Model
	head, whole := readWhole(resp)
	if ok && d.HasCompaction(head) {
		r.learn(lessons.Compacts, model, true)
		return false
	}
	_, tooLong := overflow.Recognise(resp.StatusCode, resp.Header.Get("Content-Type"), head)
	answer := r.readAnswer(resp, head)
	if tooLong || !whole || ok && condense.FinishReason(answer.Finish) != "stop" {
		return false // it failed for another reason
	}
	r.settle(resp.StatusCode, answer)((*Server).atOnce)
	if ok || bytes.Contains(head, []byte("compact")) {
		r.learn(lessons.Compacts, model, false)
	}
	return true
}

// cutByWindow returns the overflow that cut off a record of ours, nil if none did. It settles what upstream has billed for it.
func (r *request) cutByWindow(resp *http.Response) (over *overflow.Overflow) {
	if r.parsed.compaction.ours && resp.StatusCode == http.StatusOK {
		head, _ := readWhole(resp)
		if answer := r.readAnswer(resp, head); answer.Finish == "model_context_window_exceeded" {
			r.settle(resp.StatusCode, answer)((*Server).atOnce)
			used := cmp.Or(answer.Usage, &session.Usage{})
			over = &overflow.Overflow{Prompt: used.Input, Limit: used.Input + used.Output}
		}
	}
	return over
}

// readWhole reads an answer up to maxReadAnswer and leaves the response readable from its beginning. It reports whether it read all of it.
func readWhole(resp *http.Response) (head []byte, whole bool) {
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxReadAnswer))
	putBack(resp, head, err)
	return head, err == nil && len(head) < maxReadAnswer
}

// sealRecord replaces upstream's answer by a compaction item with the record in it. If the answer has no usable record, or the history
// was too long for upstream, the item has excerpts.
func (r *request) sealRecord(resp answer, d dialect.Compactor) (answer, error) {
	head, whole := readWhole(resp.Response)
	_, tooLong := overflow.Recognise(resp.StatusCode, resp.Header.Get("Content-Type"), head)
	if resp.StatusCode != http.StatusOK && !tooLong {
		return resp, nil
	}
	_ = resp.Body.Close()
	read := r.readAnswer(resp.Response, head)
	r.settle(resp.StatusCode, read)((*Server).atOnce)
	record, err := r.makeRecord(resp.Response, read, whole)
	if err != nil {
		return answer{}, errNoRecord
	}
	sealed, err := r.server.o.Engine.Seal(context.WithoutCancel(r.ctx), r.tenant.Name, record)
	if err != nil {
		r.server.degraded.readFailed(err)
		return answer{}, errCompactionUnavailable
	}
	c := &r.parsed.compaction
	c.record = record
	r.recorder.record.Condensed.Did = "compaction"
	resp.StatusCode = http.StatusOK
	resp.Header.Set("Content-Type", "application/json")
	if c.streamed {
		resp.Header.Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	replaceBody(resp.Response, d.Compaction(dialect.Compaction{
		ID: strings.ToLower(rand.Text()), Model: c.Model, Sealed: sealed, Usage: read.Usage,
		Streamed: c.streamed, ByPath: r.params.compact,
	}))
	return resp, nil
}

// makeRecord returns what replaces the history: the record that an answer holds, or if that cannot be used, excerpts.
func (r *request) makeRecord(resp *http.Response, answer dialect.Answer, whole bool) (string, error) {
	finish := condense.FinishReason(answer.Finish)
	text, failed := condense.ReadHandoff(condense.Reply{Text: answer.Text, Finish: finish})
	complete := finish == "stop" || finish == "" && !isEventStream(resp.Header) // a stream without a reason was cut off
	switch {
	case resp.StatusCode != http.StatusOK:
		failed = &condense.CallError{Kind: condense.FailureRejected, Status: resp.StatusCode}
	case failed == nil && !(whole && complete):
		failed = &condense.SummaryError{Kind: condense.FaultTruncated}
	}
	r.recorder.record.Condensed.Compaction = CompactionMade
	if failed == nil {
		made, err := r.form.Record(r.ctx, text)
		if _, bad := errors.AsType[*condense.SummaryError](err); !bad {
			return made, err
		}
		failed = err
	}
	if !r.form.Turn().Recognised() {
		return "", failed
	}
	r.recorder.failed, r.recorder.record.Condensed.Compaction = cause(failed), CompactionExcerpts
	r.server.o.Log.Warn("the model wrote no usable summary for a compaction, which has excerpts instead",
		append(r.reporter().fields(r.form.Place().Thread), zap.Error(failed))...)
	return r.form.Record(r.ctx, "") // the client gets errNoRecord
}

// readAnswer parses an answer that was read as a whole.
func (r *request) readAnswer(resp *http.Response, body []byte) dialect.Answer {
	tee := r.params.dialect.Tee(isEventStream(resp.Header))
	tee.Write(body)
	return tee.Answer()
}
