package account

import (
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Miss is why upstream did not read from its prompt cache what it could have.
type Miss string

// Causes of cache misses. Where the client changed its history, the cause is the session.Cause for which a thread was split.
const (
	MissFirst      Miss = "first"            // no earlier request of the conversation is known
	MissModel      Miss = "model_changed"    // each model has a cache of its own
	MissEndpoint   Miss = "upstream_changed" // another server or key
	MissTools      Miss = "tools_changed"    // definitions of tools precede all messages
	MissSystem     Miss = "system_changed"
	MissCondensed  Miss = "condensed"    // the history was condensed, or another summary took the place of the one before
	MissWhole      Miss = "sent_whole"   // the history was condensed before, and not in this request
	MissConcurrent Miss = "concurrent"   // it began before the one before it was answered, when the cache did not have that yet
	MissExpired    Miss = "expired"      // longer ago than upstream keeps it
	MissShort      Miss = "too_short"    // upstream caches no prompt that is so short
	MissUnmarked   Miss = "not_marked"   // the client marked nothing to be cached, as Anthropic requires
	MissMarks      Miss = "marks_moved"  // the client's newest mark precedes what was cached, or stands too far behind it for Anthropic to find it
	MissUnreported Miss = "not_reported" // upstream did not say what it read
	MissProvider   Miss = "provider"     // none of these: upstream dropped it, or another of its servers answered
)

// Prompt identifies what precedes the messages of a prompt. Values of different processes do not compare.
type Prompt struct{ Endpoint, Tools, System uint64 }

// Sent is a forwarded request, as far as a prompt cache depends on it.
type Sent struct {
	Begun, Ended time.Time
	Protocol     string
	Model        string
	Prompt       Prompt
	Record       session.CondensationID // the newest condensation in it; zero: there is none
	Split        session.Cause          // see Step.Split
	Blocks       int                    // of content that no earlier request had, where prompts are cached up to marks
	Usage        Usage
	Life         time.Duration // how long upstream keeps a prefix
}

const (
	minCached   = 1024 // tokens of the shortest prompt that providers cache
	granularity = 1024 // tokens by which they may cache less than a whole prefix

	// maxLookBack is how many blocks before a mark Anthropic looks for what it has cached:
	// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
	maxLookBack = 20
)

// MissOf returns why a request's prompt was not read from the cache as far as the one before it reached; empty if it was. before is nil if
// no earlier request of the conversation is known.
func MissOf(before, now *Sent) Miss {
	switch {
	case !now.Usage.Reported:
		return MissUnreported
	case now.Usage.Input < minCached:
		return MissShort
	case before == nil:
		return MissFirst
	case now.Usage.Cached+granularity >= now.reach(before):
		return ""
	}
	return now.changedFrom(before)
}

// reach returns how many tokens of the prompt the one before it has put into the cache.
func (s *Sent) reach(before *Sent) int {
	n := before.Usage.Input
	if marked := before.marked(); before.Usage.Written > 0 || before.byMarks() && marked > 0 {
		n = marked
	}
	return min(n, s.Usage.Input)
}

// byMarks reports whether upstream caches prompts up to marks that clients set.
func (s *Sent) byMarks() bool { return s.Protocol == "messages" }

// marked returns the tokens before the newest mark.
func (s *Sent) marked() int { return s.Usage.Cached + s.Usage.Written }

// lostByMarks reports whether the marks alone explain that upstream did not find what it had cached for the request before.
func (s *Sent) lostByMarks(before *Sent) bool {
	return s.byMarks() && (s.marked()+granularity < before.marked() || s.Blocks > maxLookBack)
}

// changedFrom returns the first of the causes that apply, in the order in which they decide.
func (s *Sent) changedFrom(before *Sent) Miss {
	switch {
	case s.Model != before.Model:
		return MissModel
	case s.Prompt.Endpoint != before.Prompt.Endpoint:
		return MissEndpoint
	case s.Prompt.Tools != before.Prompt.Tools:
		return MissTools
	case s.Prompt.System != before.Prompt.System:
		return MissSystem
	case s.Split != "" && s.Split != session.CauseUnread:
		return Miss(s.Split)
	case s.Record.Thread == "" && before.Record.Thread != "":
		return MissWhole
	case s.Record != before.Record:
		return MissCondensed
	case s.byMarks() && min(s.marked(), before.marked()) == 0:
		return MissUnmarked
	case s.Begun.Before(before.Ended):
		return MissConcurrent
	case s.Begun.Sub(before.Ended) > s.Life:
		return MissExpired
	case s.lostByMarks(before):
		return MissMarks
	}
	return MissProvider
}
