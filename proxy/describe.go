package proxy

import (
	"fmt"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// describe sets the headers that describe what was done to the request.
func (r *request) describe(h *fasthttp.ResponseHeader) {
	t := r.form
	before, thread := t.Turn().Before(), &t.Place().Thread
	after, origins := t.Composition()
	h.Set("X-Dewpoint-Session", string(thread.Session))
	h.Set("X-Dewpoint-Thread", string(thread.ID))
	h.Set("X-Dewpoint-Events", fmt.Sprintf("%d;%d", before.Events, after.Events))
	h.Set("X-Dewpoint-Tokens", fmt.Sprintf("%d;%d", t.Adjust(before.Tokens), t.Adjust(after.Tokens)))
	if key := r.params.header("X-Dewpoint-Session"); key != "" && !engine.IsSessionKey(key) {
		h.Add("X-Dewpoint-Ignored", "X-Dewpoint-Session")
	}
	if !slices.Contains([]engine.Wish{"", engine.WishNow, engine.WishOff}, r.wish()) {
		h.Add("X-Dewpoint-Ignored", "X-Dewpoint-Condense")
	}
	for _, c := range t.Condensed() {
		events, tokens := c.Before.Events-c.After.Events, c.Before.Tokens-c.After.Tokens
		h.Add("X-Dewpoint-Condensed", fmt.Sprintf("%s; %d; %d; %s", c.Reason, events, tokens, c.Made()))
	}
	if due := r.recorder.record.Turn.Due; due != "" {
		h.Set("X-Dewpoint-Due", string(due))
	}
	for name, why := range map[string]string{
		"X-Dewpoint-Condense-Failed": r.recorder.failed, "X-Dewpoint-Condense-Skipped": r.recorder.skipped,
	} {
		if why != "" {
			h.Set(name, why)
		}
	}
	if notice := r.notice(); notice != "" {
		h.Set("X-Dewpoint-Notice", notice)
	}
	if !r.params.counts {
		r.recorder.record.Turn.After, r.recorder.record.Turn.Origins = after, origins
		r.recorder.record.Turn.Newest = t.Newest()
	}
}

// notice returns a sentence about what was condensed for this request, for a client to show. It is empty if nothing was, or if the tenant has
// notices switched off.
func (r *request) notice() string {
	made := r.form.Condensed()
	if !r.tenant.Notify || len(made) == 0 {
		return ""
	}
	after := r.form.Adjust(r.form.Sent().Tokens) // as X-Dewpoint-Tokens says; later stages of a pipeline may have hidden more
	events, before := 0, after
	result := "into a summary"
	for _, c := range made {
		events += c.Before.Events - c.After.Events
		before += c.Before.Tokens - c.After.Tokens
		switch c.Made() {
		case session.MadeExcerpts:
			result = "into excerpts"
		case session.MadePlain, session.MadeProvisional:
			result = "without a summary"
		}
	}
	switch {
	case events <= 0 && made[0].Made() == session.MadeSummary:
		return fmt.Sprintf("Replaced excerpts by a summary, %s to %s tokens", thousands(before), thousands(after))
	case events <= 0:
		return fmt.Sprintf("Shortened new tool results, %s to %s tokens", thousands(before), thousands(after))
	}
	return fmt.Sprintf("Condensed %d events %s, %s to %s tokens", events, result, thousands(before), thousands(after))
}

// thousands formats a number of tokens, in thousands from 1000 on.
func thousands(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 9950:
		return fmt.Sprintf("%.1fk", float64((n+50)/100)/10)
	}
	return fmt.Sprintf("%dk", (n+500)/1000)
}
