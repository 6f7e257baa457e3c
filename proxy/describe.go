package proxy

import (
	"fmt"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// describe tells the client what was done to its request.
func (r *request) describe(h *fasthttp.ResponseHeader) {
	t := r.turn
	before, after, thread := t.Before(), t.Sent(), &t.Place().Thread
	h.Set("X-Dewpoint-Session", string(thread.Session))
	h.Set("X-Dewpoint-Thread", string(thread.ID))
	h.Set("X-Dewpoint-Events", fmt.Sprintf("%d;%d", before.Events, after.Events))
	h.Set("X-Dewpoint-Tokens", fmt.Sprintf("%d;%d", t.Adjust(before.Tokens), t.Adjust(after.Tokens)))
	for _, c := range t.Condensed() {
		h.Add("X-Dewpoint-Condensed", fmt.Sprintf("%s; %d; %d; %s", c.Reason, c.Before.Events-c.After.Events, c.Before.Tokens-c.After.Tokens, c.Made()))
	}
	if due := r.seen.record.Turn.Due; due != "" {
		h.Set("X-Dewpoint-Due", string(due))
	}
	if r.seen.failed != "" {
		h.Set("X-Dewpoint-Condense-Failed", r.seen.failed)
	}
	if notice := r.notice(); notice != "" {
		h.Set("X-Dewpoint-Notice", notice)
	}
	if !r.asked.counts {
		r.seen.record.Turn.After = after
	}
}

// notice tells in words what this request had condensed, for a client that can show it; empty if nothing or if the tenant
// does not want it.
func (r *request) notice() string {
	made := r.turn.Condensed()
	if !r.tenant.Notify || len(made) == 0 {
		return ""
	}
	events, before, after := 0, made[0].Before.Tokens, made[len(made)-1].After.Tokens
	result := "into a summary"
	for _, c := range made {
		events += c.Before.Events - c.After.Events
		switch c.Made() {
		case session.MadeExcerpts:
			result = "into excerpts"
		case session.MadePlain, session.MadeProvisional:
			result = "without a summary"
		}
	}
	if events <= 0 {
		return fmt.Sprintf("Shortened new tool results, %s to %s tokens", thousands(before), thousands(after))
	}
	return fmt.Sprintf("Condensed %d events %s, %s to %s tokens", events, result, thousands(before), thousands(after))
}

// asComment is a notice as an event of its own, which clients skip.
func asComment(notice string) []byte {
	if notice == "" {
		return nil
	}
	return []byte(": " + notice + "\n\n")
}

// thousands writes a number of tokens as people say it.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%dk", (n+500)/1000)
}
