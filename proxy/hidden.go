package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// hidden is the state of a request that offers tools of the proxy's own, whose calls the client does not see.
type hidden struct {
	strainer dialect.AnswerFilter // removes the calls from the answers; nil: no such tool is offered
	tee      dialect.Tee          // reads the last answer as upstream gave it
	rounds   int                  // how many more times upstream was called, with the results of such tools
	answered bool                 // the calls of the last answer were answered
	missed   bool                 // the last answer called only such tools, and was too long to be kept: its calls cannot be answered
	held     charge               // for the bytes of the answers
}

// answerHidden removes the calls of the proxy's own tools from upstream's answer and answers them itself. The client gets one answer,
// however many calls upstream that takes.
func (r *request) answerHidden(resp answer) (answer, error) {
	offered := !r.params.counts && r.form.Offers()
	if !offered || resp.StatusCode != http.StatusOK || len(codings(resp.Header)) > 0 {
		return resp, nil
	}
	streams := isEventStream(resp.Header)
	r.hidden.strainer = r.form.Turn().Strain(streams)
	r.hidden.tee = r.params.dialect.Tee(streams)
	if !streams {
		return r.answerHiddenWhole(resp)
	}
	every := cmp.Or(r.server.o.Limits.KeepAlive, math.MaxInt64)
	stream := *resp.Response
	stream.ContentLength = -1
	stream.Body = &filteredStream{
		r: r, upstream: resp, buffer: make([]byte, 8<<10), every: every, keepAlive: time.NewTicker(every),
	}
	return answer{&stream, resp.framed}, nil
}

// answerHiddenWhole is answerHidden for an answer that is not streamed.
func (r *request) answerHiddenWhole(resp answer) (answer, error) {
	strainer := r.hidden.strainer
	for {
		body, whole := readWhole(resp.Response)
		if len(body) == maxReadAnswer {
			_ = resp.Body.Close()
			return answer{}, errTooLongToRead
		}
		if !whole { // upstream broke it off
			r.hidden.strainer, r.hidden.tee = nil, nil
			return resp, nil
		}
		if !r.hold(2 * len(body)) { // twice, since what is parsed of it takes as much again
			r.noteNotKept()
			if r.hidden.rounds > 0 || r.form.Turn().NamesHidden(body) { // the client would get a call that it cannot answer
				_ = resp.Body.Close()
				r.hidden.tee.Write(body)
				r.settle(http.StatusOK, r.hidden.tee.Answer())((*Server).atOnce)
				return answer{}, errTooLongToRead
			}
			r.hidden.strainer, r.hidden.tee = nil, nil
			return resp, nil
		}
		strainer.Write(body)
		r.hidden.tee.Write(body)
		if !r.answerCalls() {
			if shown := strainer.Finish(); !bytes.Equal(body, shown) {
				replaceBody(resp.Response, shown)
			}
			return resp, nil
		}
		_ = resp.Body.Close()
		var err error
		resp, err = r.nextRound(false)
		if err != nil || resp.StatusCode != http.StatusOK || isEventStream(resp.Header) {
			return resp, err
		}
	}
}

// answerCalls runs the hidden calls of an answer that has ended, once. It reports whether upstream has to be called again with the results.
func (r *request) answerCalls() (again bool) {
	if r.hidden.answered {
		return false
	}
	r.hidden.answered = true
	said := r.hidden.strainer.Close()
	if said.Forgotten > 0 {
		r.noteNotKept()
		r.hidden.missed = said.OnlyHidden()
	}
	r.orPassThrough(func() {
		form, report, more := r.form.Reply(r.ctx, said)
		r.adopt(form)
		again = more
		r.noteReport(report)
	})
	if r.form.Turn().Recognised() {
		r.recorder.record.Condensed.Hidden += len(said.Calls)
	}
	return again
}

// An answer is held while it may yet turn out to call hidden tools. What exceeds freeHeld counts as request bytes, in steps of holdStep.
const (
	maxHeld  = dialect.MaxEvent // bytes of the streamed answers to one request
	freeHeld = 64 << 10
	holdStep = 64 << 10
)

// hold charges the request's client for that many bytes of answers, instead of those before. It reports whether the budget has room for them.
func (r *request) hold(bytes int) bool {
	steps := int64(max(bytes-freeHeld, 0)+holdStep-1) / holdStep
	held := r.hidden.held
	if held.bytes == 0 {
		if steps == 0 {
			return true
		}
		held.client = r.bodyReader().client
	}
	var ok bool
	r.hidden.held, ok = r.server.reader.budget.resize(held, steps*holdStep)
	return ok
}

// noteNotKept records that hidden calls of an answer cannot be answered.
func (r *request) noteNotKept() {
	r.recorder.record.Condensed.NotKept++
	if r.server.first("not kept", r.tenant.Name) {
		r.server.o.Log.Warn("an answer may call tools of the proxy's own, and is too long to be kept until they are answered, or limits.bytes_in_flight "+
			"has no room for it. Logged once; counted in dewpoint_answers_not_kept_total", zap.String("tenant", r.tenant.Name))
	}
}

// echo returns the answer as the client will send it back, nil if that is what upstream has to be sent as well.
func (r *request) echo() []byte {
	if r.hidden.strainer == nil {
		return nil
	}
	r.answerCalls()
	return r.hidden.strainer.Echo()
}

// nextRound calls upstream with the results of hidden calls. It settles the last answer and pays like a request.
func (r *request) nextRound(streams bool) (answer, error) {
	r.hidden.rounds++
	r.settle(http.StatusOK, r.hidden.tee.Answer())((*Server).atOnce)
	r.hidden.strainer.Next()
	r.hidden.tee = r.params.dialect.Tee(streams)
	r.hidden.answered = false
	if err := r.ctx.Err(); err != nil {
		return answer{}, upstreamError(r.ctx, err)
	}
	resp, err := r.payAndSend()
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		r.refund()
	}
	return resp, err
}

// lastAnswer returns upstream's last answer. It differs from what the client was sent if there were hidden calls.
func (r *request) lastAnswer(sent dialect.Answer) dialect.Answer {
	if r.hidden.tee != nil {
		return r.hidden.tee.Answer()
	}
	return sent
}

// filteredStream is the client's stream without hidden calls. The relay reads and closes it.
type filteredStream struct {
	r        *request
	upstream answer // the current one
	buffer   []byte // for reads of upstream
	out      []byte // what the client has not read yet
	end      error  // returned after out; nil: more may come

	every     time.Duration // the longest time in which the client receives nothing
	keepAlive *time.Ticker
	ended     bool              // the current answer has ended
	next      chan continuation // receives what comes after it; nil until the client has read all of out
}

// continuation is what the client gets after one of upstream's answers: the next answer, or the end of the stream.
type continuation struct {
	out      []byte
	end      error
	upstream answer // another one; without a response: there is none
}

func (s *filteredStream) Read(p []byte) (int, error) {
	for len(s.out) == 0 && s.end == nil {
		if s.ended {
			s.awaitNext()
			continue
		}
		n, err := s.upstream.Body.Read(s.buffer)
		if n == 0 && err == nil {
			return 0, nil
		}
		s.receive(s.buffer[:n], err)
	}
	if len(s.out) == 0 {
		return 0, s.end
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// receive filters what was read of upstream's answer. If the client gets nothing of it for long, it gets a comment.
func (s *filteredStream) receive(p []byte, err error) {
	if len(p) > 0 {
		s.r.recorder.firstByte()
	}
	strainer := s.r.hidden.strainer
	s.r.hidden.tee.Write(p)
	s.out = strainer.Write(p)
	if held := strainer.Held(); held > maxHeld || !s.r.hold(held) {
		strainer.Forget()
		s.r.hold(strainer.Held())
	}
	switch {
	case strainer.TooLong():
		s.out = slices.Concat(s.out, []byte("\n\n"), s.r.endWithEvent(errTooLongToRead)) // the last event may not have ended
		s.end = errTooLongToRead
	case errors.Is(err, io.EOF):
		s.ended = true
	case err != nil:
		s.end = err
	case len(s.out) > 0:
		s.keepAlive.Reset(s.every)
	default:
		select {
		case <-s.keepAlive.C:
			s.out = []byte(keepAliveComment)
		default:
		}
	}
}

// awaitNext waits for what comes after upstream's answer, or until a comment is due. No idle timeout runs meanwhile: upstream may not have
// been called yet.
func (s *filteredStream) awaitNext() {
	if s.next == nil {
		s.next = make(chan continuation, 1)
		s.keepAlive.Reset(s.every)
		go func() {
			next := continuation{end: errDefect}
			s.r.server.o.guard(func() { next = s.proceed() })
			s.next <- next
		}()
	}
	select {
	case <-s.keepAlive.C:
		s.out = []byte(keepAliveComment)
	case next := <-s.next:
		s.out, s.end = next.out, next.end
		s.ended, s.next = false, nil
		if next.upstream.Response != nil {
			s.upstream = next.upstream
		}
	}
}

// proceed answers the hidden calls of the answer that has ended and gets the next one. Nothing else may use the request until it returns.
func (s *filteredStream) proceed() continuation {
	if s.upstream.framed {
		s.r.hidden.strainer.Ended()
	}
	switch again := s.r.answerCalls(); {
	case s.r.hidden.missed: // to end here would look like the end of the agent's run
		return continuation{out: s.r.endWithEvent(errTooLongToRead), end: errTooLongToRead}
	case !again:
		return continuation{out: s.r.hidden.strainer.Finish(), end: io.EOF}
	}
	_ = s.upstream.Body.Close()
	resp, err := s.r.nextRound(true)
	switch {
	case err != nil:
		return continuation{out: s.r.endWithEvent(err), end: err}
	case resp.StatusCode != http.StatusOK || !isEventStream(resp.Header):
		return continuation{out: errorEvent(resp.Response, s.r.params.clientDialect), end: errBroken, upstream: resp}
	}
	return continuation{upstream: resp}
}

func (s *filteredStream) Close() error {
	s.keepAlive.Stop()
	if s.next != nil {
		s.r.cancel(errClientGone)
		if next := <-s.next; next.upstream.Response != nil {
			s.upstream = next.upstream
		}
	}
	return s.upstream.Body.Close() // its error is passed on as it is
}
