package messages

import (
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

var _ dialect.Unbinder = (*Dialect)(nil)

// Unbind implements dialect.Unbinder: upstream drops thinking that does not match the preceding history, instead of
// rejecting the request.
// https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (d *Dialect) Unbind(r *dialect.Request) *dialect.Request {
	outside := r.Outside()
	thinking := split.Member(rawjson.ValueOf(outside), "thinking")
	if thinking.Kind != rawjson.Object || split.Member(thinking, "block_binding").Kind != 0 {
		return r
	}
	option := []byte(`,"block_binding":{"prefix_mismatch_behavior":"drop_block"}`)
	return r.Splice(split.EndOffset(outside, thinking)-1, option)
}

// UnbindHeader implements dialect.Unbinder.
func (d *Dialect) UnbindHeader() (name, value string) {
	return "Anthropic-Beta", "thinking-binding-controls-2026-08-01"
}
