package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/proxy/listen"
)

// What breaks the client's response, or ends upstream's.
var (
	errBroken = errors.New("upstream broke off its answer")
	errDefect = errors.New("the relay panicked")
	errSilent = errors.New("upstream, or the client, fell silent")
)

// keptAlive is the comment that keeps a stream alive.
const keptAlive = ": condensing\n\n"

// relay hands upstream's answer to the client as it comes. Where a streamed request waits long for a condensation, the client's stream
// begins before that with comments. fasthttp reads it after the handler has returned, flushes after each read, and closes it once,
// whatever happens.
type relay struct {
	r    *request
	came chan struct{}  // closed when upstream has answered, or will not; nil: it is not waited for
	from *http.Response // upstream's answer
	err  error          // why there is none

	text    []byte       // comes before what is to be read of the answer
	tee     dialect.Tee  // nil: nothing reads along
	last    func()       // called before the end of the answer is handed on; nil: nothing
	relayed bool         // the answer is handed on; else it is waited for
	bytes   int64        // that came of it
	whole   bool         // it ended as it should
	end     error        // of the client's stream: why the answer is not whole; io.EOF: the client was told
	alive   *time.Ticker // when a client that waits is to hear something
	stalled *time.Timer  // ends a request whose client takes nothing; nil: it may
	uncut   func()       // gives back the client's connection
}

// patiently takes a step that may wait for a condensation. After a while the client is answered early.
func (r *request) patiently(step func()) {
	if r.early != nil {
		late := time.AfterFunc(r.server.o.Limits.KeepAlive, r.early)
		defer late.Stop()
	}
	step()
}

// attend takes a streamed request to its answer, and begins that early if a condensation takes long.
func (l *relay) attend(ctx *fasthttp.RequestCtx) error {
	early := make(chan struct{})
	l.r.early, l.came = sync.OnceFunc(func() { close(early) }), make(chan struct{})
	go l.ask()
	select {
	case <-l.came:
		return l.hand(ctx)
	case <-early:
	}
	l.alive = time.NewTicker(l.r.server.o.Limits.KeepAlive)
	l.text = append(l.text, keptAlive...)
	ctx.Response.Header.SetContentType("text/event-stream")
	ctx.Response.Header.Set("Cache-Control", "no-cache")
	l.start(ctx, -1)
	return nil
}

// ask gets upstream's answer. Nothing else uses the request meanwhile.
func (l *relay) ask() {
	defer close(l.came)
	if !l.r.server.o.survives(func() { l.from, l.err = l.r.answer() }) { //nolint:bodyclose // Close does
		l.err = errInternal
	}
}

// hand begins to hand upstream's answer to a client that has got nothing yet.
func (l *relay) hand(ctx *fasthttp.RequestCtx) error {
	if l.err != nil {
		return l.err
	}
	to := &ctx.Response.Header
	incoming(to, l.from)
	to.Set(toldID, l.r.seen.record.Asked.ID)
	l.attach(to)
	size := int(max(l.from.ContentLength, -1))
	if l.r.asked.method == http.MethodHead {
		to.SetContentLength(size)
		l.r.lease.relayed, l.whole = true, true
		return l.Close()
	}
	l.start(ctx, size)
	return nil
}

// start makes the relay the body of the client's response, whose head is written already. Its size is -1 where that is not known.
func (l *relay) start(ctx *fasthttp.RequestCtx, size int) {
	if idle := l.r.server.o.Limits.StreamIdle; idle > 0 {
		l.stalled = time.AfterFunc(idle, func() { l.r.cancel(errSilent) })
	}
	l.uncut = listen.CutOff(l.r.ctx, ctx.Conn())
	l.r.lease.relayed = true
	ctx.Response.ImmediateHeaderFlush = size < 0
	ctx.Response.SetBodyStream(l, size)
}

// attach prepares the relay of upstream's answer, and tells in a header what was done to the request.
func (l *relay) attach(header *fasthttp.ResponseHeader) {
	r := l.r
	l.relayed = true
	if r.asked.dialect != nil && l.from.Header.Get("Content-Encoding") == "" {
		r.orAsItCame(func() { l.tee = r.asked.dialect.Tee(streamed(l.from.Header)) })
	}
	if why := r.seen.record.Unread; why != "" {
		header.Set("X-Dewpoint-Unread", why)
	}
	if r.turn != nil {
		r.orAsItCame(func() { r.describe(header) })
	}
	if r.turn != nil {
		if r.turn.Logs() && l.from.StatusCode == http.StatusOK {
			l.last = func() { r.remember(l.tee) }
		}
		if streamed(l.from.Header) && r.asked.comment {
			l.text = asComment(r.notice())
		}
	}
	// Else its end is told of what was said, counted late, or sent again.
	if !r.tenant.LogContent && r.turn == r.seen.turn && r.passed.strainer == nil {
		r.dropBody()
	}
}

// Read gives the next bytes of the client's stream. It runs after the handler, which can catch no panic of it any more.
func (l *relay) Read(p []byte) (n int, err error) {
	if l.stalled != nil {
		l.stalled.Stop()
		defer l.stalled.Reset(l.r.server.o.Limits.StreamIdle)
	}
	if !l.r.server.o.survives(func() { n, err = l.next(p) }) {
		l.text, l.tee, l.last, l.end = nil, nil, nil, errDefect
		return 0, errDefect
	}
	return n, err
}

func (l *relay) next(p []byte) (int, error) {
	for {
		switch {
		case len(l.text) > 0:
			n := copy(p, l.text)
			l.text = l.text[n:]
			return n, nil
		case l.end != nil:
			return 0, l.end
		case l.relayed:
			return l.read(p)
		}
		select {
		case <-l.alive.C:
			l.text = append(l.text, keptAlive...)
		case <-l.came:
			l.handOn()
		}
	}
}

// handOn goes on with upstream's answer after comments. What its header would have told of the request, comments do; of an encoding they
// cannot. An error is told within the stream, which then ends: the client has had its status.
func (l *relay) handOn() {
	if l.err != nil {
		l.text, l.end = l.r.tell(l.err), io.EOF
		return
	}
	if len(codings(l.from.Header)) > 0 || l.from.StatusCode != http.StatusOK || !streamed(l.from.Header) {
		replaceBody(l.from, asEvent(l.from, l.r.asked.speaks))
	}
	var header fasthttp.ResponseHeader
	l.attach(&header)
	var told []byte
	for name, value := range header.All() {
		if bytes.HasPrefix(name, []byte(ownPrefix)) {
			told = fmt.Appendf(told, ": %s: %s\n", name, value)
		}
	}
	if len(told) > 0 {
		told = append(told, '\n')
	}
	l.text = append(told, l.text...)
}

// read gives the next bytes of upstream's answer.
func (l *relay) read(p []byte) (int, error) {
	n, err := l.from.Body.Read(p)
	ended := errors.Is(err, io.EOF)
	if _, strained := l.from.Body.(*strained); n > 0 && !strained { // else that says so
		l.r.seen.firstByte()
	}
	l.bytes += int64(n)
	if !l.r.server.o.survives(func() { l.readAlong(p[:n], ended) }) { // the answer goes on without all that
		l.tee, l.last, l.whole = nil, nil, ended
	}
	switch {
	case err == nil:
		return n, nil
	case l.whole:
		return n, io.EOF
	case ended:
		err = errBroken
	}
	l.end = err
	if n > 0 {
		return n, nil // the next read gives the error again: the body stays broken
	}
	return 0, err
}

// readAlong reads what has come of the answer, and has that remembered when it ends.
func (l *relay) readAlong(p []byte, ended bool) {
	if l.tee != nil && len(p) > 0 {
		l.tee.Write(p)
	}
	l.whole = ended && l.complete()
	// A client may take what it has for the whole answer before that has ended.
	over := l.whole || l.tee != nil && l.tee.Ended() || l.from.ContentLength >= 0 && l.bytes >= l.from.ContentLength
	if l.last != nil && over {
		l.last()
		l.last = nil
	}
}

// complete reports whether an answer that came to its end was one: a stream that stops before its end mark was cut off by
// something between here and the model.
func (l *relay) complete() bool {
	if l.tee == nil || l.from.StatusCode != http.StatusOK || !streamed(l.from.Header) {
		return true
	}
	return l.tee.Ended() || l.tee.Answer().Finish != ""
}

func streamed(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}

// Close ends the relay. It is called exactly once by the server, also when the client has left.
func (l *relay) Close() error {
	if l.stalled != nil {
		l.stalled.Stop()
	}
	if l.alive != nil {
		l.alive.Stop()
		if !l.relayed {
			l.r.cancel(errClientGone) // if it was still waited for
			<-l.came
		}
	}
	if l.uncut != nil {
		l.uncut()
	}
	if l.from != nil {
		_ = l.from.Body.Close()
	}
	if !l.whole && l.end == nil {
		l.end = errClientGone
	}
	l.r.server.o.survives(l.conclude) // the server calls Close where a panic would end the process
	return nil
}

// conclude tells the outcome. The request releases what it holds, whatever the tee does.
func (l *relay) conclude() {
	defer l.r.release()
	switch {
	case l.relayed:
		var answer dialect.Answer
		defer func() { l.r.ended(l, answer) }()
		if l.tee != nil {
			answer = l.tee.Answer()
		}
	case errors.Is(l.end, errDefect):
		l.r.seen.end(http.StatusInternalServerError, codeInternal)
	default:
		l.r.seen.end(statusClientGone, CodeClientGone) // unless it has ended otherwise
	}
}

// asEvent gives an answer that is no stream as an event that tells of an error: upstream's own, if that is what its body says. A success
// is one of upstream's no more.
func asEvent(resp *http.Response, in dialect.Dialect) []byte {
	var body []byte
	if len(codings(resp.Header)) == 0 {
		body, _ = readWhole(resp)
	}
	e := badUpstream("upstream_error", fmt.Sprintf("The upstream answered with status %d.", resp.StatusCode))
	if resp.StatusCode == http.StatusOK {
		e = badUpstream("upstream_not_streamed", "The upstream did not stream its answer. Try again.")
		resp.StatusCode = http.StatusBadGateway
	}
	var told struct {
		Error json.RawMessage `json:"error"`
	}
	var line bytes.Buffer
	if json.Unmarshal(body, &told) != nil || !bytes.HasPrefix(told.Error, []byte{'{'}) || json.Compact(&line, body) != nil {
		line.Reset()
		line.Write(e.body(in))
	}
	return in.Event(line.Bytes())
}

// replaceBody puts another body in the place of a response's, which is closed.
func replaceBody(resp *http.Response, body []byte) {
	_ = resp.Body.Close()
	resp.TransferEncoding, resp.ContentLength, resp.Body = nil, int64(len(body)), io.NopCloser(bytes.NewReader(body))
}

// timed is upstream's answer, which ends if upstream falls silent while it is read.
type timed struct {
	io.ReadCloser
	idle   time.Duration
	silent *time.Timer
}

// timedBody gives a body of upstream's as it is to be read.
func timedBody(body io.ReadCloser, idle time.Duration, cancel context.CancelCauseFunc) io.ReadCloser {
	if idle <= 0 {
		return body
	}
	silent := time.AfterFunc(idle, func() { cancel(errSilent) })
	silent.Stop()
	return &timed{body, idle, silent}
}

func (t *timed) Read(p []byte) (int, error) {
	t.silent.Reset(t.idle)
	defer t.silent.Stop()
	return t.ReadCloser.Read(p) //nolint:wrapcheck // the body's own
}
