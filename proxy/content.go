package proxy

import "github.com/dewpoint-proxy/dewpoint/dialect"

// content is what the log is told of what was said: only for a tenant whose LogContent is set.
func (r *request) content(answer dialect.Answer) *Content {
	if r.asked.dialect == nil || r.seen.record.Unread != "" || !r.tenant.LogContent {
		return nil
	}
	c := &Content{Request: r.body.bytes, Answer: answer}
	if parts := r.forwarded(); len(parts) > 1 {
		c.Forwarded = parts
	}
	return c
}
