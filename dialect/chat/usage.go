package chat

import (
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// usage is what is known of a usage report. Cached tokens are part of prompt_tokens; hits is DeepSeek's name for them.
type usage struct{ prompt, completion, details, hits, cached rawjson.Value }

func (u *usage) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "prompt_tokens":
		return &u.prompt
	case "completion_tokens":
		return &u.completion
	case "prompt_tokens_details":
		return &u.details
	case "prompt_cache_hit_tokens":
		return &u.hits
	case "cached_tokens":
		return &u.cached
	}
	return nil
}

// meter takes a usage report; the last one counts. A report without token counts is none.
func (a *answer) meter(report rawjson.Value) {
	if report.Kind != rawjson.Object {
		return
	}
	var u usage
	split.Fill(&u, report.Raw)
	if u.prompt.Kind != rawjson.Number && u.completion.Kind != rawjson.Number {
		return
	}
	if u.details.Kind == rawjson.Object {
		u.cached = rawjson.Value{}
		var details usage
		split.Fill(&details, u.details.Raw)
		u.cached = details.cached
	}
	a.usage = &session.Usage{
		Input:  split.Integer(u.prompt),
		Cached: max(split.Integer(u.cached), split.Integer(u.hits)),
		Output: split.Integer(u.completion),
	}
	if a.usage.Cached > a.usage.Input { // some gateways leave the cached part out, as Anthropic does
		a.usage.Input += a.usage.Cached
	}
}
