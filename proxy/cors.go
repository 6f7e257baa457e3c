package proxy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// Origins lists the origins of web pages whose scripts may use the proxy, as a browser sends them in Origin. AnyOrigin stands for all. Cookies
// and other credentials that a browser adds by itself are never allowed.
type Origins []string

// AnyOrigin in Origins allows every page.
const AnyOrigin = "*"

// allow returns the value of Access-Control-Allow-Origin for an origin, "" for one that is not allowed.
func (o Origins) allow(origin string) string {
	switch {
	case slices.Contains(o, AnyOrigin):
		return AnyOrigin
	case origin != "" && slices.Contains(o, origin):
		return origin
	}
	return ""
}

// vary reports whether the answer depends on the origin.
func (o Origins) vary() bool { return len(o) > 0 && !slices.Contains(o, AnyOrigin) }

const (
	allowOrigin   = "Access-Control-Allow-Origin"
	exposeHeaders = "Access-Control-Expose-Headers"

	// exposed are the names of the headers of answers that scripts may read besides the few that browsers always show.
	exposed = requestIDHeader + ", X-Dewpoint-Session, X-Dewpoint-Thread, X-Dewpoint-Events, X-Dewpoint-Tokens, X-Dewpoint-Condensed, " +
		"X-Dewpoint-Condense-Failed, X-Dewpoint-Condense-Skipped, X-Dewpoint-Due, X-Dewpoint-Notice, X-Dewpoint-Ignored, X-Dewpoint-Unread, Retry-After"
)

// share sets the CORS headers of an answer. Those of upstream's answer, if there are any, are kept; only the names of our own headers are added.
func (r *request) share(h *fasthttp.ResponseHeader) {
	origins := r.live.Origins
	allowed := origins.allow(r.origin)
	if len(h.Peek(allowOrigin)) > 0 {
		if allowed != "" {
			h.Add(exposeHeaders, exposed)
		}
		return
	}
	if origins.vary() {
		h.Add("Vary", "Origin")
	}
	if allowed != "" {
		h.Set(allowOrigin, allowed)
		h.Add(exposeHeaders, exposed)
	}
}

// shareWithPage is share if a web page sent the request. Other clients get upstream's answer as it is.
func (r *request) shareWithPage(h *fasthttp.ResponseHeader) {
	if r.origin != "" {
		r.share(h)
	}
}

// Bounds of what a preflight is answered with.
const (
	maxAskedHeaders = 64    // names
	maxAskedName    = 64    // bytes of each
	preflightAge    = "600" // seconds for which a browser remembers the answer
	askedMethod     = "Access-Control-Request-Method"
	askedHeaders    = "Access-Control-Request-Headers"
)

// isPreflight reports whether a browser asks if a page may send a request.
func isPreflight(h *fasthttp.RequestHeader) bool {
	return string(h.Method()) == http.MethodOptions && len(h.Peek("Origin")) > 0 && len(h.Peek(askedMethod)) > 0
}

// answerPreflight answers a preflight. A browser sends it without the client's key, so it has no tenant, and does not go upstream. The page may
// use the method and headers that it asks for: what they do is up to the key and to upstream.
func (r *request) answerPreflight(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	ctx.SetStatusCode(http.StatusNoContent)
	h.Set("Vary", "Origin, "+askedMethod+", "+askedHeaders)
	if allowed := r.live.Origins.allow(r.origin); allowed != "" {
		h.Set(allowOrigin, allowed)
		h.Set("Access-Control-Max-Age", preflightAge)
		if method := string(ctx.Request.Header.Peek(askedMethod)); token(method) && len(method) <= maxMethod {
			h.Set("Access-Control-Allow-Methods", method)
		}
		if names := askedNames(string(ctx.Request.Header.Peek(askedHeaders))); names != "" {
			h.Set("Access-Control-Allow-Headers", names)
		}
	}
	if r.discardBody(ctx) {
		ctx.SetConnectionClose()
	}
	r.recorder.end(http.StatusNoContent, "")
}

// askedNames returns the valid header names in a list, within the bounds.
func askedNames(list string) string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if token(name) && len(name) <= maxAskedName && len(names) < maxAskedHeaders {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
