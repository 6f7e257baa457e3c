package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/proxy/listen"
)

// waiting is the answer to a streamed request that waits long for a condensation: a stream that begins with comments, and goes on
// with upstream's once that is there. fasthttp reads it after the handler has returned.
type waiting struct {
	r    *request
	came chan struct{} // closed when upstream has answered, or will not
	resp *http.Response
	err  error

	every *time.Ticker
	uncut func() // gives back the client's connection
	text  []byte // to be handed on first
	relay *relay // nil: upstream's answer has not come
	end   error  // of the stream, where there is none to relay
}

// patiently takes a step that may wait for a condensation. After a while the client is answered early.
func (r *request) patiently(step func()) {
	if r.early != nil {
		late := time.AfterFunc(r.server.o.Limits.KeepAlive, func() {
			select {
			case r.early <- struct{}{}:
			default:
			}
		})
		defer late.Stop()
	}
	step()
}

// attend takes a streamed request to its answer, and begins that early if a condensation takes long.
func (r *request) attend(ctx *fasthttp.RequestCtx) error {
	r.early = make(chan struct{}, 1)
	w := &waiting{r: r, came: make(chan struct{})}
	go w.work()
	select {
	case <-w.came:
	case <-r.early:
		w.start(ctx)
		return nil
	}
	if w.err != nil {
		return w.err
	}
	r.relay(ctx, w.resp)
	return nil
}

// work gets upstream's answer. Nothing else uses the request meanwhile.
func (w *waiting) work() {
	defer close(w.came)
	defer func() {
		if v := recover(); v != nil {
			w.r.server.panicked(v)
			w.err = errInternal()
		}
	}()
	w.resp, w.err = w.r.answer() //nolint:bodyclose // the relay closes it
}

// start answers the client before upstream has.
func (w *waiting) start(ctx *fasthttp.RequestCtx) {
	w.r.lease.relayed = true
	w.every = time.NewTicker(w.r.server.o.Limits.KeepAlive)
	w.uncut = listen.CutOff(w.r.ctx, ctx.Conn())
	w.comment()
	to := &ctx.Response
	to.Header.SetContentType("text/event-stream")
	to.Header.Set("Cache-Control", "no-cache")
	to.ImmediateHeaderFlush = true
	to.SetBodyStream(w, -1)
}

func (w *waiting) comment() { w.text = append(w.text, keptAlive...) }

// keptAlive is the comment that keeps a stream alive.
const keptAlive = ": condensing\n\n"

// Read gives the next bytes of the stream.
func (w *waiting) Read(p []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			w.r.server.panicked(v)
			w.relay, w.end = nil, errDefect
			n, err = 0, errDefect
		}
	}()
	for {
		switch {
		case len(w.text) > 0:
			n := copy(p, w.text)
			w.text = w.text[n:]
			return n, nil
		case w.relay != nil:
			return w.relay.Read(p)
		case w.end != nil:
			return 0, w.end
		}
		select {
		case <-w.every.C:
			w.comment()
		case <-w.came:
			w.arrived()
		}
	}
}

// arrived goes on with upstream's answer. An error is told within the stream, which then ends: the client has had its status.
func (w *waiting) arrived() {
	if w.err == nil {
		w.hand(w.resp)
		return
	}
	w.end = io.EOF
	if e := w.r.failedWith(w.err); e != nil {
		w.text = w.r.asked.speaks.Event(e.body(w.r.asked.speaks))
		return
	}
	w.end = errClientGone
}

// hand relays upstream's answer. What its header would have told of the request, comments do; of an encoding they cannot.
func (w *waiting) hand(resp *http.Response) {
	if encoded := len(codings(resp.Header)) > 0; encoded || resp.StatusCode != http.StatusOK || !streamed(resp.Header) {
		var body []byte
		if !encoded {
			w.r.unlessSilent(func(func()) { body, _ = io.ReadAll(io.LimitReader(resp.Body, longestError)) })
		}
		resp = asEvent(resp, body, w.r.asked.speaks) //nolint:bodyclose // likewise
	}
	var header fasthttp.ResponseHeader
	w.relay = w.r.relayOf(resp, &header)
	for name, value := range header.All() {
		if strings.HasPrefix(strings.ToLower(string(name)), ownPrefix) {
			w.text = fmt.Appendf(w.text, ": %s: %s\n", name, value)
		}
	}
	if len(w.text) > 0 {
		w.text = append(w.text, '\n')
	}
	w.relay.watch()
}

// longestError bounds what is read of an answer that is no stream, in bytes.
const longestError = 64 << 10

// asEvent makes an answer that is no stream an event that tells of an error: upstream's own, if that is what its body says.
func asEvent(resp *http.Response, body []byte, in dialect.Dialect) *http.Response {
	e := errUpstream("upstream_error", fmt.Sprintf("The upstream answered with status %d.", resp.StatusCode))
	out := *resp
	if resp.StatusCode == http.StatusOK {
		e = errUpstream("upstream_not_streamed", "The upstream did not stream its answer. Try again.")
		out.StatusCode = http.StatusBadGateway
	}
	var told struct {
		Error json.RawMessage `json:"error"`
	}
	var line bytes.Buffer
	if json.Unmarshal(body, &told) != nil || !bytes.HasPrefix(told.Error, []byte{'{'}) || json.Compact(&line, body) != nil {
		line.Reset()
		line.Write(e.body(in))
	}
	text := in.Event(line.Bytes())
	out.ContentLength = int64(len(text))
	out.Body = &spliced{Reader: bytes.NewReader(text), Closer: resp.Body}
	return &out
}

// Close ends the stream. It is called exactly once by the server, also when the client has left.
func (w *waiting) Close() error {
	w.every.Stop()
	if w.relay == nil {
		w.r.cancel(errClientGone) // if it was still waited for
		<-w.came
	}
	w.uncut()
	switch {
	case w.relay != nil:
		return w.relay.Close()
	case w.resp != nil:
		_ = w.resp.Body.Close()
	}
	if errors.Is(w.end, errDefect) {
		w.r.seen.refused(http.StatusInternalServerError, codeInternal)
	}
	w.r.seen.refused(statusClientGone, CodeClientGone) // unless it has ended otherwise
	w.r.release()
	return nil
}
