package condense

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// AmortizedForgetting is the rolling condenser that hides the middle without a summary, so that half of the limit that was
// exceeded is left. A summary that the view shows already stays.
type AmortizedForgetting struct {
	Settings
}

func (AmortizedForgetting) Name() string { return "amortized_forgetting" }

func (a AmortizedForgetting) Condense(in Input) Decision {
	j := a.job(a.Name(), in)
	return j.decide(&j, func() Obstacle { return j.shrink(session.Size{}) })
}

// ConversationWindow condenses only on request and after an overflow. It keeps the essentials (system messages, the first
// and the newest user message, the newest unit, a summary) and the newest half of the rest, by tokens, or as much of that as
// fits the window. It writes no summary.
type ConversationWindow struct{}

func (ConversationWindow) Name() string { return "conversation_window" }

func (w ConversationWindow) Condense(in Input) Decision {
	if in.Need.Reason == "" {
		return Decision{}
	}
	p := essentials(in)
	target := p.kept.Tokens + p.size(0, len(in.View.Items)).Tokens/2
	if in.Need.Hard && in.Window > 0 {
		target = min(target, Room(in)-in.Fixed)
	}
	p.tail(session.Size{Events: unlimited, Tokens: target})
	c, ok := p.cut()
	if !ok || c.After.Tokens >= c.Before.Tokens {
		return Decision{Obstacle: ObstacleUncut}
	}
	return Decision{Job: &job{name: w.Name(), due: Due{Need: in.Need}, cut: c}}
}

// essentials returns a picker that has picked what a conversation cannot do without.
func essentials(in Input) *picker {
	p := newPicker(&in, in.Measure(in.View.Items))
	p.summaries()
	p.protect()
	p.head(0, session.Size{Events: unlimited, Tokens: unlimited})
	return p
}

// Essential returns the minimum number of tokens that a request has, however much is condensed.
func Essential(in Input) int { return in.Fixed + essentials(in).kept.Tokens }

// roomShare is the share of a window that stays free because counts are not exact, one in that many.
const roomShare = 50

// Room returns the number of tokens that a request may have in the model's window.
func Room(in Input) int { return in.Window - in.Window/roomShare - min(in.Reserved, in.Window/2) }

// RecentEvents shows the beginning of a history and its newest events. It hides no messages for later requests. What protect picks stays even
// beyond the limits.
type RecentEvents struct {
	KeepFirst int     // number of messages at the beginning that stay, not counting system messages
	MaxEvents int     // maximum number of events, without the system messages after the first other message
	MaxTokens float64 // as Settings.MaxTokens
}

func (RecentEvents) Name() string { return "recent_events" }

func (r RecentEvents) Condense(in Input) Decision {
	target, tokens := session.Size{Events: r.MaxEvents, Tokens: unlimited}, make([]int, len(in.View.Items))
	limit := tokenLimit(r.MaxTokens, in.Window)
	tooLong := limit > 0 && in.Total > limit
	if tooLong {
		target.Tokens, tokens = limit-in.Fixed, in.Measure(in.View.Items)
	}
	if events(in.View.Items) <= r.MaxEvents && !tooLong {
		return Decision{}
	}
	p := newPicker(&in, tokens)
	p.protect()
	p.summaries()
	p.head(r.KeepFirst, target)
	p.tail(target)
	p.notes()
	if !slices.Contains(p.keep, false) {
		return Decision{}
	}
	return Decision{View: viewOf(&in, p.keep)}
}
