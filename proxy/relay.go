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

// Errors that break the client's response or cancel upstream's.
var (
	errBroken = errors.New("upstream broke off its answer")
	errDefect = errors.New("the relay panicked")
	errSilent = errors.New("upstream or the client was idle for too long")
)

// keepAliveComment is sent while a stream waits for a condensation.
const keepAliveComment = ": condensing\n\n"

// relay copies upstream's answer to the client, chunk by chunk. If a streamed request waits long for a condensation, the relay opens the
// client's stream early and sends comments. fasthttp reads it after the handler has returned (sendUnframed within it), flushes after each
// Read, and calls Close exactly once, whatever happens.
type relay struct {
	r        *request
	answered chan struct{} // closed when resp or err is set; nil: one of them is set from the start
	resp     answer        // upstream's
	err      error         // why there is none

	pending   []byte       // sent to the client before more of the answer is read
	tee       dialect.Tee  // reads the answer along; nil: nothing does
	beforeEnd func()       // called before the end of the answer is passed on; nil: nothing is
	attached  bool         // the answer is being relayed; false: it is waited for
	received  int64        // bytes of the answer
	ended     ending       // how the answer ended
	over      int          // how many reads there were since the answer's end, which included; from the second on, the client has been sent all of it
	end       error        // ends the client's stream: why the answer is not whole, or io.EOF if the client was sent an error
	keepAlive *time.Ticker // of comments to a client that waits
	stall     *time.Timer  // cancels a request whose client stops reading; nil: no limit
	uncut     func()       // ends listen.CutOff
}

// withKeepAlive runs a step that may wait for a condensation. If it takes long, the client's stream begins meanwhile.
func (r *request) withKeepAlive(step func()) {
	if r.early != nil {
		timer := time.AfterFunc(r.server.o.Limits.KeepAlive, r.early)
		defer timer.Stop()
	}
	step()
}

// serveStream waits for the answer to a streamed request, and begins the client's stream before that if a condensation takes long.
func (l *relay) serveStream(ctx *fasthttp.RequestCtx) error {
	early := make(chan struct{})
	l.r.early = sync.OnceFunc(func() { close(early) })
	l.answered = make(chan struct{})
	go func() { // nothing else may use the request until it returns
		defer close(l.answered)
		if !l.r.server.o.guard(func() { l.resp, l.err = l.r.answer() }) {
			l.err = errInternal
		}
	}()
	select {
	case <-l.answered:
		return l.respond(ctx)
	case <-early:
	}
	l.keepAlive = time.NewTicker(l.r.server.o.Limits.KeepAlive)
	l.pending = append(l.pending, keepAliveComment...)
	ctx.Response.Header.SetContentType("text/event-stream")
	ctx.Response.Header.Set("Cache-Control", "no-cache")
	ctx.Response.Header.Set("X-Accel-Buffering", "no") // nginx would collect the comments
	l.r.shareWithPage(&ctx.Response.Header)
	l.startBody(ctx, -1)
	return nil
}

// respond starts the response to a client that has been sent nothing yet.
func (l *relay) respond(ctx *fasthttp.RequestCtx) error {
	if l.err != nil {
		return l.err
	}
	header := &ctx.Response.Header
	incoming(header, l.resp.Response)
	header.Set(requestIDHeader, l.r.recorder.record.Asked.ID)
	l.r.shareWithPage(header)
	l.attach(header)
	size := int(max(l.resp.ContentLength, -1))
	if l.r.params.method == http.MethodHead {
		if size >= 0 { // otherwise it would announce chunks, also in HTTP/1.0
			header.SetContentLength(size)
		}
		l.r.lease.relayed, l.ended = true, endedWhole
		return l.Close()
	}
	if isEventStream(l.resp.Header) {
		size = -1 // each event is passed on at once, with ours among them
	}
	l.startBody(ctx, size)
	return nil
}

// startBody makes the relay the body of the client's response, whose header is complete. size is -1 if it is not known.
func (l *relay) startBody(ctx *fasthttp.RequestCtx, size int) {
	if idle := l.r.server.o.Limits.StreamIdle; idle > 0 {
		l.stall = time.AfterFunc(idle, func() { l.r.cancel(errSilent) })
	}
	l.uncut = listen.CutOff(l.r.ctx, ctx.Conn())
	l.r.lease.relayed = true
	if size < 0 && !ctx.Request.Header.IsHTTP11() {
		l.sendUnframed(ctx)
		return
	}
	ctx.Response.ImmediateHeaderFlush = size < 0
	ctx.Response.SetBodyStream(l, size)
}

// sendUnframed sends the answer to an HTTP/1.0 client, which cannot read chunks: the end of the connection is the end of the answer.
// fasthttp always frames an answer, so it is sent here, and fasthttp finds the connection closed.
func (l *relay) sendUnframed(ctx *fasthttp.RequestCtx) {
	conn := ctx.Conn()
	defer conn.Close()
	defer l.Close() //nolint:errcheck // it returns none
	ctx.Response.Header.SetConnectionClose()
	_, err := ctx.Response.Header.WriteTo(conn)
	if err == nil {
		_, err = io.Copy(conn, l)
	}
	if tcp, ok := conn.(interface{ SetLinger(sec int) error }); ok && err != nil {
		_ = tcp.SetLinger(0) // a reset tells the client that the answer is not whole
	}
}

// attach prepares the relay of upstream's answer, and describes in the header what was done to the request.
func (l *relay) attach(header *fasthttp.ResponseHeader) {
	r := l.r
	l.attached = true
	if r.params.dialect != nil && l.resp.Header.Get("Content-Encoding") == "" {
		r.orPassThrough(func() { l.tee = r.params.dialect.Tee(isEventStream(l.resp.Header)) })
	}
	if why := r.recorder.record.Unread; why != "" {
		header.Set("X-Dewpoint-Unread", why)
	}
	if r.form.Turn().Recognised() {
		r.orPassThrough(func() { r.describe(header) })
	}
	if r.form.Turn().Recognised() {
		if r.form.Logs() && l.resp.StatusCode == http.StatusOK {
			l.beforeEnd = func() {
				// A client that got no more than the beginning of an answer may ask again, and is not to be taken for another run then.
				if !l.ended.unfinished() && (l.tee == nil || !l.tee.Failed()) {
					r.markAnswer(l.tee)
				}
			}
		}
		notice := r.notice()
		if notice != "" && r.params.notices && isEventStream(l.resp.Header) && len(codings(l.resp.Header)) == 0 {
			l.pending = []byte(": " + notice + "\n\n") // a comment, which clients skip
		}
	}
	// The body is no longer needed unless it is logged, counted at the end, or sent again with the results of hidden tools.
	if !r.tenant.LogContent && r.form.Turn().Recognised() == (r.recorder.form != nil) && r.hidden.strainer == nil && !r.form.Turn().NeedsText() {
		r.dropText()
	}
}

// Read implements io.Reader. It usually runs after the handler has returned, which can recover from no panic any more.
func (l *relay) Read(p []byte) (n int, err error) {
	if l.stall != nil {
		l.stall.Stop()
		defer l.stall.Reset(l.r.server.o.Limits.StreamIdle)
	}
	if !l.r.server.o.guard(func() { n, err = l.next(p) }) {
		l.pending, l.tee, l.beforeEnd = nil, nil, nil
		l.end = errDefect
		return 0, errDefect
	}
	return n, err
}

func (l *relay) next(p []byte) (int, error) {
	for {
		switch {
		case len(l.pending) > 0:
			n := copy(p, l.pending)
			l.pending = l.pending[n:]
			return n, nil
		case l.end != nil:
			return 0, l.end
		case l.attached:
			return l.read(p)
		}
		select {
		case <-l.keepAlive.C:
			l.pending = append(l.pending, keepAliveComment...)
		case <-l.answered:
			l.attachLate()
		}
	}
}

// attachLate goes on with upstream's answer after comments. The client already has its status and header. So our own headers are sent as
// comments, an answer that is not an event stream as an error event, and an error of ours as an event that ends the stream.
func (l *relay) attachLate() {
	if l.err != nil {
		l.pending = l.r.endWithEvent(l.err)
		l.end = io.EOF
		return
	}
	if len(codings(l.resp.Header)) > 0 || l.resp.StatusCode != http.StatusOK || !isEventStream(l.resp.Header) {
		replaceBody(l.resp.Response, errorEvent(l.resp.Response, l.r.params.clientDialect))
	}
	var header fasthttp.ResponseHeader
	l.attach(&header)
	var comments []byte
	for name, value := range header.All() {
		if bytes.HasPrefix(name, []byte(ownPrefix)) {
			comments = fmt.Appendf(comments, ": %s: %s\n", name, value)
		}
	}
	if len(comments) > 0 {
		comments = append(comments, '\n')
	}
	l.pending = append(comments, l.pending...)
}

// read returns the next bytes of upstream's answer.
func (l *relay) read(p []byte) (int, error) {
	n, err := l.resp.Body.Read(p)
	ended := errors.Is(err, io.EOF)
	_, filtered := l.resp.Body.(*filteredStream)
	if n > 0 && !filtered { // a filtered stream notes the first byte of upstream's itself
		l.r.recorder.firstByte()
	}
	l.received += int64(n)
	if !l.r.server.o.guard(func() { l.observe(p[:n], ended) }) { // the answer goes on, unobserved
		l.tee, l.beforeEnd = nil, nil
		if ended {
			l.ended = endedWhole
		}
	}
	switch {
	case err == nil:
		return n, nil
	case l.ended.framed():
		return n, io.EOF
	case ended:
		err = errBroken
	}
	l.end = err
	if n > 0 {
		return n, nil // the next Read returns the error
	}
	return 0, err
}

// observe shows the tee what was received, and calls beforeEnd when the answer is over.
func (l *relay) observe(p []byte, ended bool) {
	if l.tee != nil && len(p) > 0 {
		l.tee.Write(p)
	}
	if ended {
		l.ended = l.ending()
	}
	// Once it has the end mark, or all bytes of a known length, a client may take the answer to be over.
	if !l.ended.framed() && (l.tee == nil || !l.tee.Ended()) && (l.resp.ContentLength < 0 || l.received < l.resp.ContentLength) {
		return
	}
	l.over++
	if l.beforeEnd != nil {
		l.beforeEnd()
		l.beforeEnd = nil
	}
}

// ending is how upstream's answer ended.
type ending int

const (
	notEnded   ending = iota
	endedWhole        // as its framing says, with all that belongs to it
	endedShort        // as its framing says, but it is a stream without its end mark: the cut happened behind upstream
	brokenOff         // it is a stream without its end mark, and nothing tells its end from a broken connection
)

// framed reports whether the answer ended as its framing says. The client then gets the same end.
func (e ending) framed() bool { return e == endedWhole || e == endedShort }

// unfinished reports whether the answer ended before its end mark.
func (e ending) unfinished() bool { return e == endedShort || e == brokenOff }

// ending returns how the answer ended, of which no more can be read.
func (l *relay) ending() ending {
	last := l.resp
	if s, filtered := l.resp.Body.(*filteredStream); filtered {
		last = s.upstream
	}
	switch {
	case l.complete():
		return endedWhole
	case last.framed:
		return endedShort
	}
	return brokenOff
}

// complete reports whether an answer that has ended is all of it. A stream without its end mark was cut off between here and the model, unless
// it ends with an error.
func (l *relay) complete() bool {
	if l.tee == nil || l.resp.StatusCode != http.StatusOK || !isEventStream(l.resp.Header) {
		return true
	}
	return l.tee.Ended() || l.tee.Failed() || l.tee.Answer().Finish != ""
}

func isEventStream(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}

// Close implements io.Closer. fasthttp or sendUnframed calls it exactly once, also if the client has left.
func (l *relay) Close() error {
	if l.stall != nil {
		l.stall.Stop()
	}
	if l.keepAlive != nil {
		l.keepAlive.Stop()
		if !l.attached {
			l.r.cancel(errClientGone)
			<-l.answered
		}
	}
	if l.uncut != nil {
		l.uncut()
	}
	if l.resp.Response != nil {
		_ = l.resp.Body.Close()
	}
	switch {
	case l.over > 1 && (l.end == nil || errors.Is(context.Cause(l.r.ctx), errClientGone)):
		l.end = nil // the client left with all of the answer
	case !l.ended.framed() && l.end == nil:
		l.end = errClientGone
	}
	l.r.server.o.guard(l.conclude) // a panic in Close would end the process
	return nil
}

// conclude records how the request ended and releases it, whatever the tee does.
func (l *relay) conclude() {
	defer l.r.release()
	switch {
	case l.attached:
		var answer dialect.Answer
		defer func() { l.r.finish(l, answer) }()
		if l.tee != nil {
			answer = l.tee.Answer()
		}
	case errors.Is(l.end, errDefect):
		l.r.recorder.end(http.StatusInternalServerError, codeInternal)
	default:
		l.r.recorder.end(statusClientGone, CodeClientGone) // unless attachLate ended it
	}
}

// errorEvent turns an answer that is not an event stream into an error event: upstream's own error if the body is one. A successful answer
// becomes a 502.
func errorEvent(resp *http.Response, in dialect.Dialect) []byte {
	var body []byte
	if len(codings(resp.Header)) == 0 {
		body, _ = readWhole(resp)
	}
	e := badUpstream("upstream_error", strings.TrimSpace(fmt.Sprintf("The upstream answered with status %d. %s", resp.StatusCode, quotable(body))))
	if resp.StatusCode == http.StatusOK {
		e = badUpstream("upstream_not_streamed", "The upstream did not stream its answer. Try again.")
		resp.StatusCode = http.StatusBadGateway
	}
	if own := oneLineError(body); own != nil {
		return in.Event(own)
	}
	return in.Event(e.body(in))
}

// maxQuoted bounds what is quoted of an error whose form is not known, in bytes.
const maxQuoted = 1000

// quotable returns the beginning of an error's text on one line, or an empty string if it is a web page.
func quotable(body []byte) string {
	text := strings.ToValidUTF8(string(body[:min(len(body), maxQuoted)]), "")
	if text = strings.Join(strings.Fields(text), " "); strings.HasPrefix(text, "<") {
		return ""
	}
	return text
}

// oneLineError returns a JSON body that holds an error object on one line, nil if it is not such a body.
func oneLineError(body []byte) []byte {
	var in struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &in) != nil || !bytes.HasPrefix(in.Error, []byte{'{'}) {
		return nil
	}
	var line bytes.Buffer
	if json.Compact(&line, body) != nil {
		return nil
	}
	return line.Bytes()
}

// replaceBody closes the body of a response and gives it another one.
func replaceBody(resp *http.Response, body []byte) {
	_ = resp.Body.Close()
	resp.TransferEncoding = nil
	resp.ContentLength = int64(len(body))
	resp.Body = io.NopCloser(bytes.NewReader(body))
}

// idleBody is upstream's answer, whose request is cancelled if a Read takes longer than idle.
type idleBody struct {
	io.ReadCloser
	idle  time.Duration
	timer *time.Timer
}

// withIdleTimeout bounds each Read of a body. It returns the body itself if idle is 0.
func withIdleTimeout(body io.ReadCloser, idle time.Duration, cancel context.CancelCauseFunc) io.ReadCloser {
	if idle <= 0 {
		return body
	}
	timer := time.AfterFunc(idle, func() { cancel(errSilent) })
	timer.Stop()
	return &idleBody{body, idle, timer}
}

func (b *idleBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.idle)
	defer b.timer.Stop()
	return b.ReadCloser.Read(p) // its error is passed on as it is
}
