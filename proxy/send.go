package proxy

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/overflow"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// send makes one call upstream with a body of parts.
func (r *request) send(parts [][]byte) (*http.Response, error) {
	r.authorize()
	to, err := target(r.tenant.Upstream.BaseURL, r.params.path, r.params.query)
	if err != nil {
		return nil, err
	}
	if timeout := r.tenant.Upstream.Timeout; timeout > 0 && r.lease.timeout == nil {
		r.lease.timeout = time.AfterFunc(timeout, func() { r.cancel(context.DeadlineExceeded) })
	}
	header := r.upstreamHeader()
	r.obs.beginCall(header)
	resp, err := r.transport().RoundTrip(r.upstreamRequest(to, header, parts))
	if err != nil {
		err = upstreamError(r.ctx, err)
		r.obs.callFailed(err)
		return nil, err
	}
	r.obs.record.Call.Status = resp.StatusCode
	resp.Body = withIdleTimeout(resp.Body, r.server.o.Limits.StreamIdle, r.cancel)
	redact(resp, r.tenant.Upstream.APIKey)
	r.noteAccepted(resp.StatusCode)
	return resp, nil
}

func (r *request) transport() http.RoundTripper {
	if own := r.tenant.Upstream.Transport; own != nil {
		return own
	}
	return r.server.o.Upstream
}

// upstreamHeader returns the client's header, with a value added if the forwarded body needs one that the client did not send.
func (r *request) upstreamHeader() http.Header {
	name, value := r.parsed.unbinding[0], r.parsed.unbinding[1]
	if r.form != nil {
		name, value = r.form.Header()
	}
	header := r.header.Clone() // the transport may still be reading that of an earlier attempt
	if sent := strings.Join(header[name], ","); name != "" && !strings.Contains(sent, value) {
		header.Set(name, strings.TrimPrefix(sent+","+value, ","))
	}
	return header
}

// authorize replaces all credentials of the client by the configured key, if there is one.
func (r *request) authorize() {
	if r.tenant.Upstream.APIKey == "" {
		return
	}
	for _, name := range agents.CredentialHeaders() {
		r.header.Del(name)
	}
	r.params.query = withoutKeys(r.params.query)
	r.header.Set(r.keyHeader())
}

// withoutKeys removes the parameters that carry a client's key from a query, and leaves the rest verbatim.
func withoutKeys(query string) string {
	kept := slices.DeleteFunc(strings.Split(query, "&"), func(parameter string) bool {
		name, _, _ := strings.Cut(parameter, "=")
		name, _ = url.QueryUnescape(name)
		return slices.Contains(agents.CredentialQuery(), name)
	})
	return strings.Join(kept, "&")
}

// retryRefused changes a request that upstream refused for a reason that can be cured, and sends it again, until upstream accepts it or no
// remedy is left. It returns the last answer, which may be upstream's refusal.
func (r *request) retryRefused(resp *http.Response) (*http.Response, error) {
	for {
		opener := r.params.dialect
		if r.form != nil && !r.form.MayRetry() {
			opener = nil // nothing is held back for an error that would be passed on anyway
		}
		why := r.server.o.readRefusal(resp, opener)
		cut := r.cutByWindow(resp)
		why.Overflow = cmp.Or(why.Overflow, cut)
		if r.refusesToManage(why) {
			return resp, nil
		}
		retry := false
		r.orPassThrough(func() { retry = r.remedy(why) })
		if !retry {
			if r.form != nil {
				r.orPassThrough(func() { r.settleForm(resp.StatusCode, why) })
			}
			return resp, nil
		}
		_ = resp.Body.Close()
		var err error
		if cut != nil {
			err = r.pay() // the last call is settled
		}
		if err == nil {
			resp, err = r.send(r.forwarded())
		}
		if err != nil {
			r.endUnanswered()
			return nil, err
		}
	}
}

// settleForm ends a request that is not sent again.
func (r *request) settleForm(status int, why overflow.Refusal) {
	form, report := r.form.Settle(r.ctx, status == http.StatusOK && why == overflow.Refusal{}, why)
	r.adopt(form)
	r.noteReport(report)
}

// endUnanswered ends a turn whose request gets no answer.
func (r *request) endUnanswered() {
	if r.form == nil {
		return
	}
	r.orPassThrough(func() {
		form, report := r.form.Unanswered(r.ctx)
		r.adopt(form)
		r.noteReport(report)
	})
}

// remedy changes the request so that upstream may accept it, and reports whether to send it again. It does not go on for ever: relief from
// an overflow is tried a few times, every other remedy once.
func (r *request) remedy(why overflow.Refusal) (again bool) {
	if r.form == nil {
		return why.Objects() && r.stripSealed(why)
	}
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
		r.obs.record.Turn.Relieved++
	}
	return report.Remedy != ""
}

// carriesSealed reports whether a request without a turn carries sealed reasoning.
func (r *request) carriesSealed() bool {
	sealed := func(m session.Message) bool { return m.Sealed }
	return r.parsed.split != nil && slices.ContainsFunc(r.parsed.split.Messages, sealed)
}

// stripSealed removes the sealed reasoning from a request without a turn, whose thread may have been condensed before. It reports whether
// that changed the body; it does so at most once.
func (r *request) stripSealed(why overflow.Refusal) bool {
	if r.parsed.stripped != nil {
		return false
	}
	p := &r.parsed
	p.stripped, p.unbinding[0], p.unbinding[1] = r.server.o.Engine.WithoutReasoning(r.params.dialect, p.split, why)
	return r.parsed.stripped != nil
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

// minRedactedKey is the length of the shortest key that is looked for in answers. A shorter one might be any word.
const minRedactedKey = 8

// redact masks the operator's key in the header of an answer and, if it may be an error, in its body: some servers repeat a key that they
// refuse. The mask is as long as the key, so that Content-Length stays true. A compressed body is not searched; one that is too long to be
// searched is cut off.
func redact(resp *http.Response, key string) {
	if len(key) < minRedactedKey {
		return
	}
	mask := strings.Repeat("*", len(key))
	for _, values := range resp.Header {
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], key, mask)
		}
	}
	resp.Status = strings.ReplaceAll(resp.Status, key, mask)
	if !mayBeError(resp) {
		return
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxReadAnswer))
	if err == nil && len(head) == maxReadAnswer {
		err = errBroken
	}
	putBack(resp, bytes.ReplaceAll(head, []byte(key), []byte(mask)), err)
}
