package proxy

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
)

// attempt is one call upstream.
type attempt struct {
	url    *url.URL
	header http.Header
	parts  [][]byte // of the body
}

// answer is upstream's answer to an attempt. Its body is the caller's to close.
type answer struct {
	*http.Response
	framed bool // its end can be told from a broken connection
}

// attempt returns the call that sends the request's form.
func (r *request) attempt() (a attempt, err error) {
	path, query := r.params.path, r.params.query
	if r.parsed.compaction.ours { // upstream is asked for a record in its place
		path = strings.TrimSuffix(path, "/compact")
	}
	a.parts = r.forwarded()     // first: if that panics, another form goes on
	a.header = r.header.Clone() // the transport may still be reading that of an earlier attempt
	if r.params.dialect != nil {
		a.header.Set("Accept-Encoding", "identity") // the tee reads the answer
	}
	if r.upstream.APIKey != "" {
		a.header.Set(r.keyHeader())
	}
	name, value := r.form.Header()
	if sent := strings.Join(a.header[name], ","); name != "" && !strings.Contains(sent, value) {
		a.header.Set(name, strings.TrimPrefix(sent+","+value, ","))
	}
	a.url, err = target(r.upstream.BaseURL, path, query)
	return a, err
}

// send makes one call upstream with the request's form.
func (r *request) send() (answer, error) {
	a, err := r.attempt()
	if err != nil {
		return answer{}, err
	}
	if timeout := r.upstream.Timeout; timeout > 0 && r.lease.timeout == nil {
		r.lease.timeout = time.AfterFunc(timeout, func() { r.cancel(context.DeadlineExceeded) })
	}
	r.recorder.beginCall(a.header)
	moving := watchProgress(r.server.o.Limits.AnswerWait, r.cancel)
	resp, err := r.transport().RoundTrip(r.upstreamRequest(a, moving.made)) //nolint:bodyclose // who gets the answer closes it
	moving.end()
	if err != nil {
		err = upstreamError(r.ctx, err)
		r.recorder.callFailed(err)
		return answer{}, err
	}
	r.recorder.record.Call.Status, r.recorder.record.Call.Retry = resp.StatusCode, retryAfter(resp.Header, r.server.o.Now())
	framed := resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0 || resp.ProtoMajor > 1
	if r.params.dialect != nil {
		decodeAnswer(resp)
	}
	resp.Body = withIdleTimeout(resp.Body, r.server.o.Limits.StreamIdle, r.cancel)
	if key := r.upstream.APIKey; key != "" {
		r.hideOperator(resp, key)
	}
	r.noteAccepted(resp.StatusCode)
	return answer{resp, framed}, nil
}

// retryAfter returns how long upstream wants to be left alone: the seconds, or the date, of Retry-After. It is 0 if upstream does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 { // which NaN is not
		return time.Duration(min(seconds, 1e6) * float64(time.Second))
	}
	return 0
}

func (r *accepted) transport() http.RoundTripper {
	if own := r.upstream.Transport; own != nil {
		return own
	}
	return r.server.o.Upstream
}

// retryRefused changes a request that upstream refused for a reason that can be cured, and sends it again, until upstream accepts it or no
// remedy is left. It returns the last answer, which may be upstream's refusal.
func (r *request) retryRefused(resp answer) (answer, error) {
	for {
		may := r.form.MayRetry()
		if !may && !r.form.Turn().Recognised() {
			return resp, nil
		}
		opener := r.params.dialect
		if !may {
			opener = nil // nothing is held back for an error that would be passed on anyway
		}
		why := r.server.o.readRefusal(resp.Response, opener)
		cut := r.cutByWindow(resp.Response)
		why.Overflow = cmp.Or(why.Overflow, cut)
		if r.refusesToManage(why) {
			return resp, nil
		}
		retry := false
		r.orPassThrough(func() { retry = r.remedy(why) })
		if !retry {
			r.orPassThrough(func() { r.settleForm(resp.StatusCode, why) })
			return resp, nil
		}
		_ = resp.Body.Close()
		var err error
		if cut != nil {
			err = r.pay() // the last call is settled
		}
		if err == nil {
			resp, err = r.send()
		}
		if err != nil {
			r.endUnanswered()
			return answer{}, err
		}
	}
}

// settleForm ends a request that is not sent again.
func (r *request) settleForm(status int, why overflow.Refusal) {
	form, report := r.form.Settle(r.ctx, status == http.StatusOK && why == overflow.Refusal{}, why)
	r.adopt(form)
	r.noteReport(report)
}

// endUnanswered ends a request that gets no answer.
func (r *request) endUnanswered() {
	r.orPassThrough(func() {
		form, report := r.form.Unanswered(r.ctx)
		r.adopt(form)
		r.noteReport(report)
	})
}

// remedy changes the request so that upstream may accept it, and reports whether to send it again.
func (r *request) remedy(why overflow.Refusal) (again bool) {
	var form *engine.Form
	var report engine.Report
	next := func() { form, report = r.form.Next(r.ctx, why) }
	if why.Overflow == nil {
		next()
	} else {
		r.withKeepAlive(next)
	}
	r.adopt(form)
	r.noteReport(report)
	if report.Remedy == engine.Shrink {
		r.recorder.record.Turn.Relieved++
	}
	return report.Remedy != ""
}

// maxRefusal bounds how much of an answer is read to recognise a refusal, in bytes.
const maxRefusal = 64 << 10

// readRefusal looks for a refusal in an answer and leaves the response readable from its beginning. Of a stream it reads the first event,
// and of a body of unknown length the first piece, if that comes soon: some upstreams report errors there.
func (o *Options) readRefusal(resp *http.Response, in dialect.Dialect) overflow.Refusal {
	var head []byte
	switch {
	case mayBeError(resp):
		var err error
		head, err = io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		putBack(resp, head, err)
	case resp.StatusCode == http.StatusOK && (isEventStream(resp.Header) || resp.ContentLength < 0) && len(codings(resp.Header)) == 0:
		first := o.openEvent(resp, in)
		resp.Body = first
		head = first.peek()
	}
	return overflow.ReadRefusal(resp.StatusCode, resp.Header.Get("Content-Type"), head)
}

// mayBeError reports whether an answer may be an error and can be read to find out: it has an error status, or it is short and complete,
// since some gateways send errors with status 200.
func mayBeError(resp *http.Response) bool {
	if resp.Header.Get("Content-Encoding") != "" {
		return false
	}
	short := resp.ContentLength > 0 && resp.ContentLength <= maxRefusal && !isEventStream(resp.Header)
	return resp.StatusCode >= http.StatusBadRequest || resp.StatusCode == http.StatusOK && short
}

// putBack makes a response readable from its beginning, after head was read of it, up to err if that is not nil.
func putBack(resp *http.Response, head []byte, err error) {
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = errReader{err}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), resp.Body}
}

// errReader returns the same error from every Read.
type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }
