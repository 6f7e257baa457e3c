package journal

import (
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// maxThreads is how many threads' newest requests are remembered, to tell why the next ones missed the cache; about 5 MB.
const maxThreads = 20_000

// longLife is how long Anthropic keeps what is written to be kept for an hour.
const longLife = time.Hour

// missOf returns why upstream read less of a step from its cache than it could have, and remembers the step for the next one.
func (j *Journal) missOf(r *proxy.Record, usage account.Usage) account.Miss {
	if !r.IsStep() {
		return ""
	}
	t := r.Turn
	now := account.Sent{
		Begun: r.Times.Begun, Ended: r.Times.Ended, Protocol: r.Dialect, Model: r.Asked.Model, Prompt: account.Prompt(t.Prompt),
		Record: t.Newest, Split: t.Cause, Blocks: t.NewBlocks, Usage: usage, Life: model.CacheOf(r.Asked.Model).Life,
	}
	var before *account.Sent
	if last, known := j.last.Get(t.Thread); known {
		before = &last
	} else if last, known := j.last.Get(t.Relation.Parent); known && t.Relation.Parent != "" {
		before = &last
	}
	if before != nil && before.Usage.WrittenLong > 0 {
		now.Life = max(now.Life, longLife)
	}
	j.last.Add(t.Thread, now)
	return account.MissOf(before, &now)
}
