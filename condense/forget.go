package condense

import "github.com/dewpoint-proxy/dewpoint/session"

// AmortizedForgetting is the rolling condenser without a model: it forgets the middle, so that half of what trips it is
// left. It makes no summary; one that the view shows already stays.
type AmortizedForgetting struct {
	Settings
}

func (AmortizedForgetting) Name() string { return "amortized_forgetting" }

func (a AmortizedForgetting) Condense(in Input) Decision {
	j := a.job(a.Name(), in)
	return j.decide(&j, func() Kept { return j.shrink(session.Size{}) })
}

// ConversationWindow condenses on request only, and after an overflow: it keeps what a conversation cannot do without
// (system messages, the first and the newest user message, the newest unit, a summary) and the newest half of the rest, by tokens,
// or what of that fits the window. It makes no summary.
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
		return Decision{Kept: KeptUncut}
	}
	return Decision{Job: &job{name: w.Name(), due: Due{Need: in.Need}, cut: c}}
}

// essentials has picked what a conversation cannot do without.
func essentials(in Input) *picker {
	p := newPicker(&in, in.Measure(in.View.Items))
	p.summaries()
	p.protect()
	p.head(0, session.Size{Events: unlimited, Tokens: unlimited})
	return p
}

// Essential is how many tokens a request has at least, however much is condensed.
func Essential(in Input) int { return in.Fixed + essentials(in).kept.Tokens }

// roomShare is the part of a window that stays free, one in so many: counts are not exact.
const roomShare = 50

// Room is how many tokens a request may have, by what the model's window leaves.
func Room(in Input) int { return in.Window - in.Window/roomShare - min(in.Reserved, in.Window/2) }

// RecentEvents shows the beginning of a history and its newest events. It forgets nothing: every request's view is made
// anew.
type RecentEvents struct {
	KeepFirst int // messages at the beginning that stay, system messages not counted
	MaxEvents int // events in all; exceeded only by what must stay (system messages, newest user message, last unit)
}

func (RecentEvents) Name() string { return "recent_events" }

func (r RecentEvents) Condense(in Input) Decision {
	if len(in.View.Items) <= r.MaxEvents {
		return Decision{}
	}
	p := newPicker(&in, make([]int, len(in.View.Items))) // tokens do not matter
	p.protect()
	p.summaries()
	target := session.Size{Events: r.MaxEvents, Tokens: unlimited}
	p.head(r.KeepFirst, target)
	p.tail(target)

	v := session.View{History: in.View.History, Applied: in.View.Applied}
	for i, item := range in.View.Items {
		if p.keep[i] {
			v.Items = append(v.Items, item)
		}
	}
	if len(v.Items) == len(in.View.Items) {
		return Decision{}
	}
	Render(in.Codec, &v)
	return Decision{View: &v}
}
