package proxy

import (
	"bytes"
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

// send makes the request upstream.
func (r *request) send(parts [][]byte) (*http.Response, error) {
	r.authorize()
	to, err := target(r.tenant.Upstream.BaseURL, r.asked.path, r.asked.query)
	if err != nil {
		return nil, err
	}
	if limit := r.tenant.Upstream.Timeout; limit > 0 && r.lease.limit == nil {
		r.lease.limit = time.AfterFunc(limit, func() { r.cancel(context.DeadlineExceeded) })
	}
	header := r.unbound()
	r.seen.sending(header)
	resp, err := r.server.o.Upstream.RoundTrip(r.outbound(to, header, parts))
	if err != nil {
		err = upstreamError(r.ctx, err)
	}
	r.seen.answered(resp, err)
	if err == nil {
		resp.Body = timedBody(resp.Body, r.server.o.Limits.StreamIdle, r.cancel)
		redact(resp, r.tenant.Upstream.APIKey)
		r.noteAccepted(resp.StatusCode)
	}
	return resp, err
}

// unbound is the header that goes upstream: the client's, and what is forwarded may need a value more than the client sends.
func (r *request) unbound() http.Header {
	if r.turn == nil {
		return r.header
	}
	name, value := r.turn.Unbinding()
	if sent := strings.Join(r.header[name], ","); name != "" && !strings.Contains(sent, value) {
		header := r.header.Clone()
		header.Set(name, strings.TrimPrefix(sent+","+value, ","))
		return header
	}
	return r.header
}

// authorize puts the configured key in the place of all that the client sent.
func (r *request) authorize() {
	if r.tenant.Upstream.APIKey == "" {
		return
	}
	for _, name := range agents.CredentialHeaders() {
		r.header.Del(name)
	}
	r.asked.query = withoutKeys(r.asked.query)
	r.header.Set(r.keyHeader())
}

// withoutKeys is a query without the parameters that carry a client's key, and otherwise as it came.
func withoutKeys(query string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(query, "&"), func(parameter string) bool {
		name, _, _ := strings.Cut(parameter, "=")
		name, _ = url.QueryUnescape(name)
		return slices.Contains(agents.CredentialQuery(), name)
	}), "&")
}

// persist has a request changed that upstream refused for a reason that is ours to cure, and sends it again. It gives the last answer,
// whatever that is: if nothing helps, upstream's own error.
func (r *request) persist(resp *http.Response) (*http.Response, error) {
	for {
		said := r.server.o.refusalOf(resp, r.asked.dialect)
		if r.managed(said) {
			return resp, nil
		}
		again := false
		r.orAsItCame(func() { again = r.remedy(said) })
		if !again {
			if r.turn != nil {
				taken := resp.StatusCode == http.StatusOK && said == (refusal{})
				r.orAsItCame(func() { r.note(r.turn.Settle(r.ctx, taken)) })
			}
			return resp, nil
		}
		_ = resp.Body.Close()
		var err error
		if resp, err = r.send(r.forwarded()); err != nil {
			r.unanswered()
			return nil, err
		}
	}
}

// unanswered ends a turn that gets no answer.
func (r *request) unanswered() {
	if r.turn != nil {
		r.orAsItCame(func() { r.note(r.turn.Unanswered(r.ctx)) })
	}
}

// remedy does something about a refusal, and reports whether the request is to be sent again. Each remedy ends: an overflow's after a
// few tries, the others are taken once.
func (r *request) remedy(said refusal) bool {
	switch {
	case r.turn == nil:
		return said.refused && r.bare()
	case said.overflow != nil:
		var relief engine.Relief
		r.patiently(func() { relief = r.turn.Relieve(r.ctx, *said.overflow) })
		r.note(relief.Report)
		if relief.Smaller {
			r.seen.record.Turn.Relieved++
		}
		return relief.Smaller
	case said.alternates && r.turn.Alternate(), said.refused && (r.turn.Withdraw() || r.turn.Bare()):
		return true
	case said.refused:
		report, again := r.turn.Unchange()
		r.note(report)
		return again
	}
	return false
}

// sealed reports whether a request that was not recognised carries sealed reasoning.
func (r *request) sealed() bool {
	return r.passed.split != nil && slices.ContainsFunc(r.passed.split.Messages, func(m session.Message) bool { return m.Sealed })
}

// bare has a request that was not recognised sent without its sealed reasoning, once: its thread may have been condensed before. It
// reports whether that makes a difference.
func (r *request) bare() bool {
	if r.passed.bared != nil {
		return false
	}
	r.passed.bared = engine.Bare(r.asked.dialect, r.passed.split)
	return r.passed.bared != nil
}

// refusal is what upstream's answer says against a request; zero: nothing that could be cured.
type refusal struct {
	overflow   *overflow.Overflow // it is too long
	alternates bool               // its roles do not alternate
	refused    bool               // it is refused for what is in it, this or something else
	managed    bool               // it asks upstream to manage the history by itself
}

// refusalRead bounds what is read of an error to recognise it, in bytes.
const refusalRead = 64 << 10

// refusalOf reads what an answer says, and leaves the response as it was. Of a stream it reads the first event, which may tell of an
// error before there is any answer, if that comes soon.
func (o *Options) refusalOf(resp *http.Response, in dialect.Dialect) refusal {
	said := refusal{refused: refuses(resp.StatusCode)}
	var head []byte
	switch stream := resp.StatusCode == http.StatusOK && streamed(resp.Header) && len(codings(resp.Header)) == 0; {
	case suspicious(resp):
		var err error
		head, err = io.ReadAll(io.LimitReader(resp.Body, refusalRead))
		putBack(resp, head, err)
	case stream:
		e := o.openEvent(resp.Body, in)
		head, resp.Body = e.soon(), e
	default:
		return said
	}
	kind := resp.Header.Get("Content-Type")
	if over, is := overflow.Recognise(resp.StatusCode, kind, head); is {
		said.overflow = &over
	}
	said.managed = said.refused && bytes.Contains(head, []byte("context_management"))
	said.alternates = overflow.AlternatesRoles(resp.StatusCode, kind, head)
	return said
}

// refuses reports whether a status says that a request was refused for what is in it: not for its key, its price, its address, its
// rate or its length.
func refuses(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return false
	}
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError
}

// suspicious reports whether an answer may be a refusal and can be read to find out: an error, or a short whole answer,
// since some gateways tell of errors with status 200.
func suspicious(resp *http.Response) bool {
	if resp.Header.Get("Content-Encoding") != "" {
		return false
	}
	short := resp.ContentLength > 0 && resp.ContentLength <= refusalRead && !streamed(resp.Header)
	return resp.StatusCode >= http.StatusBadRequest || resp.StatusCode == http.StatusOK && short
}

// spliced is a body that is read in another way than it is closed.
type spliced struct {
	io.Reader
	io.Closer
}

// putBack has a response read again from its beginning, of which the head was read before, until an error if there was one.
func putBack(resp *http.Response, head []byte, err error) {
	resp.Body = spliced{readBefore(head, resp.Body, err), resp.Body}
}

// readBefore is a body of which the head was read before, until an error if there was one.
func readBefore(head []byte, rest io.Reader, err error) io.Reader {
	if err != nil {
		rest = failing{err}
	}
	return io.MultiReader(bytes.NewReader(head), rest)
}

// failing gives an error that was met before.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// shortestSecret is how long a key must be to be looked for in answers: a shorter one might be any word.
const shortestSecret = 8

// redact has an answer that may be an error not show the operator's key: some servers repeat it when they refuse it. What is in its
// place is as long, so that the answer's length stays true. A compressed answer is not looked into. One that is too long to be is cut off.
func redact(resp *http.Response, key string) {
	if len(key) < shortestSecret {
		return
	}
	mask := strings.Repeat("*", len(key))
	for _, values := range resp.Header {
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], key, mask)
		}
	}
	resp.Status = strings.ReplaceAll(resp.Status, key, mask)
	if !suspicious(resp) {
		return
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, mostRecord))
	if err == nil && len(head) == mostRecord {
		err = errBroken
	}
	putBack(resp, bytes.ReplaceAll(head, []byte(key), []byte(mask)), err)
}
