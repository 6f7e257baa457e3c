package console

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// reasons says why a request was condensed.
var reasons = map[session.Reason]string{
	session.ReasonEconomics: "because it pays",
	session.ReasonEvents:    "too many messages",
	session.ReasonTokens:    "over its limit of tokens",
	session.ReasonWindow:    "the model's window is full",
	session.ReasonRequest:   "on request",
	session.ReasonOverflow:  "upstream found it too long",
}

// shown says what stands in place of the messages that a condensation hides.
func shown(c *session.Condensation) string {
	hidden := 0
	for _, r := range c.Forgotten {
		hidden += r.To - r.From
	}
	messages := plural(hidden, "message")
	switch c.Made() {
	case session.MadeSummary:
		return fmt.Sprintf("%s became a summary by %s", messages, terminal.Name(c.Model))
	case session.MadeExcerpts, session.MadeProvisional:
		return messages + instead(c)
	case session.MadeTrim:
		return "long results were cut"
	}
	return messages + " hidden"
}

// instead says what stands in place of messages if no model wrote a summary, and why none did, if that was not meant.
func instead(c *session.Condensation) string {
	says := " became excerpts"
	if c.SummaryTokens == 0 {
		says = " hidden"
	}
	if why := causes[c.Cause]; c.Provisional && why != "" {
		says += ", because " + why
	}
	return says
}

// kept says why a request went whole although a condensation was due.
var kept = map[engine.Outcome]string{
	engine.Cooling:  "not condensed: the summariser rests after a failure",
	engine.Uncut:    "not condensed: hiding what may be hidden would save too little",
	engine.Loop:     "not condensed yet: a loop of tools needs its reasoning",
	engine.Locked:   "not condensed: another request is condensing it",
	engine.Refused:  "not condensed: upstream has refused a changed request of it",
	engine.HeldOut:  "not condensed: held out for comparison",
	engine.Observed: "would have been condensed; this is only observed",
	engine.Off:      "not condensed: its client asked for that",
}

// compactions says what became of a compaction that a client wanted.
var compactions = map[proxy.Compaction]string{
	proxy.CompactionMade: "compacted for its client", proxy.CompactionExcerpts: "compacted for its client, as excerpts",
	proxy.CompactionFailed: "its client's compaction failed", proxy.CompactionRefused: "its client's compaction is not one of this proxy",
}

// causes says why a summary failed.
var causes = map[string]string{
	"denied": "the summariser refused the key", "rate_limited": "the summariser has too many requests", "timeout": "the summariser took too long",
	"unreachable": "the summariser cannot be reached", "rejected": "the summariser refused the request", "server": "the summariser failed",
	"malformed": "the summariser's answer cannot be used", "deadline": "the summary was not ready in time", "busy": "too many summaries at once",
	"limited": "the tenant has used up its summaries", "empty": "the summary was empty", "refused": "the summariser refused",
	"truncated": "the summary was cut off", "inflated": "the summary was not shorter", "ungrounded": "the summary named what is not in the history",
	"store": "the store is away", "cooling": "the summariser rests after a failure",
}

// notes returns what a person should know about a request that is a part of a conversation, the most important first.
func notes(r *proxy.Record) (all []string) {
	t := r.Turn
	condensed := made(t)
	for i := range condensed {
		c := &condensed[i]
		all = append(all, fmt.Sprintf("condensed, %s: %s", cmp.Or(reasons[c.Reason], string(c.Reason)), shown(c)))
	}
	if len(condensed) < len(t.Condensed) {
		all = append(all, "long results or images were cut")
	}
	if did, cause, _ := strings.Cut(r.Condensed.Did, ":"); did == string(engine.Failed) {
		all = append(all, "not condensed: "+cmp.Or(causes[cause], cause, "it failed"))
	} else if why := kept[r.Condensed.Whole]; why != "" {
		all = append(all, why)
	}
	if says := compactions[r.Condensed.Compaction]; says != "" {
		all = append(all, says)
	}
	if t.Begins {
		all = append(all, "new session")
	}
	return all
}

// trouble returns what went wrong with a request, in words; empty if nothing did. The figures of upstream's refusals are named, since people
// look them up.
func trouble(r *proxy.Record) string {
	switch r.Code {
	case "":
		if r.Condensed.Did == "store_away" {
			return "the store is away: forwarded unchanged"
		}
		if r.Unread != "" {
			return unread[r.Unread]
		}
		return ""
	case proxy.CodeUpstream4xx, proxy.CodeUpstream5xx:
		return refusal(r.Call.Status, r.Call.Retry)
	}
	if says := codes[r.Code]; says != "" {
		return says
	}
	return fmt.Sprintf("refused with %d, %s", r.Status, terminal.Name(r.Code))
}

// refusal says what an error status of upstream means.
func refusal(status int, retry time.Duration) string {
	says := "upstream refused it"
	switch {
	case status == 200:
		return "upstream's answer is an error"
	case status == 401, status == 403:
		says = "upstream refused the key"
	case status == 402:
		says = "upstream wants to be paid first"
	case status == 404:
		says = "upstream knows no such model or path"
	case status == 413:
		says = "upstream found it too large"
	case status == 429:
		says = "upstream has had too many requests"
	case status == 529:
		says = "upstream is overloaded"
	case status >= 500:
		says = "upstream failed"
	}
	says = fmt.Sprintf("%s (%d)", says, status)
	if retry > 0 {
		says += ", retry after " + rough(retry)
	}
	return says + ": passed on"
}

// unread says why a body was forwarded without being read.
var unread = map[string]string{
	"encoding":    "forwarded unread: its Content-Encoding is not known",
	"unsupported": "forwarded unread: it is no conversation that is supported",
	"path":        "forwarded unread: its path is ambiguous",
}

// codes says what went wrong, by code. Codes that are not listed explain themselves.
var codes = map[string]string{
	proxy.CodeClientGone:           "the client left",
	proxy.CodeBroken:               "upstream broke off its answer",
	proxy.CodeUnfinished:           "upstream's stream ended without its end mark",
	"upstream_unreachable":         "upstream cannot be reached",
	"upstream_timeout":             "upstream did not answer in time",
	"upstream_error":               "upstream's answer cannot be read",
	"invalid_api_key":              "refused: its key belongs to no tenant",
	"tenant_refused":               "refused: its tenant's file has an error",
	"overloaded":                   "refused: limits.bytes_in_flight is reached",
	"share_exceeded":               "refused: its share of limits.bytes_in_flight is reached",
	"request_loop":                 "refused: upstream leads back to this proxy",
	"shutting_down":                "refused: stopping",
	"request_too_large":            "refused: larger than limits.max_body",
	"websocket_unsupported":        "WebSocket refused: clients fall back to POST",
	"tokens_per_minute_exceeded":   "refused: tokens per minute are used up",
	"requests_per_minute_exceeded": "refused: requests per minute are used up",
	"concurrent_requests_exceeded": "refused: too many requests at once",
	"budget_spent":                 "refused: the budget is spent",
	"session_budget_spent":         "refused: the session's budget is spent",
	"internal_error":               "Dewpoint failed: a defect",
}
