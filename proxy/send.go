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
	if r.turn != nil {
		name, value = r.turn.Unbinding()
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
		if r.turn != nil && !r.turn.MayRetry() {
			opener = nil // nothing is held back for an error that would be passed on anyway
		}
		why := r.server.o.readRefusal(resp, opener)
		cut := r.cutByWindow(resp)
		why.overflow = cmp.Or(why.overflow, cut)
		if r.refusesToManage(why) {
			return resp, nil
		}
		retry := false
		r.orPassThrough(func() { retry = r.remedy(why) })
		if !retry {
			if r.turn != nil {
				r.orPassThrough(func() { r.endTurn(resp.StatusCode, why) })
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

// endTurn ends a turn whose request is not sent again.
func (r *request) endTurn(status int, why refusal) {
	r.turn.NoteFailure(why.status)
	passing := why.status == http.StatusInternalServerError || why.status >= http.StatusBadRequest && !slices.Contains(doubtful, why.status)
	if passing && why.overflow == nil && !why.refused {
		r.endUnanswered() // such as a rate limit: the request itself may be acceptable
		return
	}
	r.noteReport(r.turn.Settle(r.ctx, status == http.StatusOK && why == (refusal{})))
}

// endUnanswered ends a turn whose request gets no answer.
func (r *request) endUnanswered() {
	if r.turn != nil {
		r.orPassThrough(func() { r.noteReport(r.turn.Unanswered(r.ctx)) })
	}
}

// remedy changes the request so that upstream may accept it, and reports whether to send it again. It does not go on for ever: relief from
// an overflow is tried a few times, every other remedy once.
func (r *request) remedy(why refusal) bool {
	if r.turn == nil {
		return why.refused && r.stripSealed(why.thinking)
	}
	if why.overflow != nil {
		return r.relieve(*why.overflow)
	}
	if why.alternates && r.turn.AlternateRoles() {
		return true
	}
	if why.refused && (r.turn.Withdraw() || r.turn.StripReasoning(why.reasoning, why.thinking)) {
		return true
	}
	var report engine.Report
	retry := false
	switch {
	case why.refused:
		report, retry = r.turn.ForwardVerbatim()
	case slices.Contains(doubtful, why.status):
		report, retry = r.turn.DoubtChange(why.status)
	}
	r.noteReport(report)
	return retry
}

// relieve makes a request smaller that was too long for upstream, and reports whether it could.
func (r *request) relieve(over overflow.Overflow) bool {
	var report engine.Report
	smaller := false
	r.withKeepAlive(func() { report, smaller = r.turn.Relieve(r.ctx, over) })
	r.noteReport(report)
	if smaller {
		r.obs.record.Turn.Relieved++
	}
	return smaller
}

// carriesSealed reports whether a request without a turn carries sealed reasoning.
func (r *request) carriesSealed() bool {
	sealed := func(m session.Message) bool { return m.Sealed }
	return r.parsed.split != nil && slices.ContainsFunc(r.parsed.split.Messages, sealed)
}

// stripSealed removes the sealed reasoning from a request without a turn, whose thread may have been condensed before. It reports whether
// that changed the body; it does so at most once.
func (r *request) stripSealed(unbind bool) bool {
	if r.parsed.stripped != nil {
		return false
	}
	p := &r.parsed
	p.stripped, p.unbinding[0], p.unbinding[1] = r.server.o.Engine.StripReasoning(r.params.dialect, p.split, unbind)
	return r.parsed.stripped != nil
}

// refusal is why upstream refused a request. The zero value is an answer.
type refusal struct {
	status     int                // of the failure, which the body may state in place of an answer
	overflow   *overflow.Overflow // it is too long
	alternates bool               // its roles do not alternate
	refused    bool               // upstream objects to its content, for one of these reasons or another
	managed    bool               // upstream does not manage histories, which the request asks for
	thinking   bool               // upstream's objection mentions thinking
	reasoning  bool               // or reasoning by another name
}

// maxRefusal bounds how much of an answer is read to recognise a refusal, in bytes.
const maxRefusal = 64 << 10

// readRefusal looks for a refusal in an answer and leaves the response readable from its beginning. Of a stream it reads the first event,
// and of a body of unknown length the first piece, if that comes soon: some upstreams report errors there.
func (o *Options) readRefusal(resp *http.Response, in dialect.Dialect) refusal {
	var why refusal
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
	contentType := resp.Header.Get("Content-Type")
	why.status = overflow.Failure(resp.StatusCode, contentType, head)
	why.refused = refuses(why.status)
	if over, ok := overflow.Recognise(resp.StatusCode, contentType, head); ok {
		why.overflow = &over
	}
	mentions := func(word string) bool { return why.refused && bytes.Contains(head, []byte(word)) }
	why.managed = mentions("context_management")
	why.thinking = mentions("thinking")
	why.reasoning = why.thinking || mentions("reasoning") || mentions("encrypted")
	why.alternates = overflow.AlternatesRoles(resp.StatusCode, contentType, head)
	return why
}

// refuses reports whether a status is a refusal of the request's content, and not of its key, price, address, rate or length.
func refuses(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return false
	}
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError
}

// doubtful are the statuses with which some servers refuse a request's content: filters with 403 and 413, templates with 500 and 501. Those
// of overload and of gateways say nothing about the content.
var doubtful = []int{
	http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusInternalServerError, http.StatusNotImplemented,
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
