package condense

import "github.com/dewpoint-proxy/dewpoint/session"

// ConversationWindow condenses on request only, and after an overflow: it keeps what a conversation cannot do without
// (system messages, the first and the newest user message, the newest unit, a summary) and the newest half of the rest, by tokens,
// or what of that fits the window. It makes no summary.
type ConversationWindow struct{}

var _ Condenser = ConversationWindow{}

// Name implements Condenser.
func (ConversationWindow) Name() string { return "conversation_window" }

// Condense implements Condenser.
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
	c, ok := p.cut(in)
	if !ok || c.Kept.Tokens >= c.Before.Tokens {
		return Decision{Kept: KeptUncut}
	}
	return Decision{Job: &cutJob{need: in.Need, condensation: c.condensation(in.Need.Reason, w.Name())}}
}

// essentials has picked what a conversation cannot do without.
func essentials(in Input) *picker {
	p := newPicker(in.View, in.Measure(in.View.Items))
	p.summaries()
	p.protect()
	p.head(in.Codec, 0, session.Size{Events: unlimited, Tokens: unlimited})
	return p
}

// Essential is how many tokens a request has at least, however much is condensed.
func Essential(in Input) int { return in.Fixed + essentials(in).kept.Tokens }

// roomShare is the part of a window that stays free, one in so many: counts are not exact.
const roomShare = 50

// Room is how many tokens a request may have, by what the model's window leaves.
func Room(in Input) int { return in.Window - in.Window/roomShare - min(in.Reserved, in.Window/2) }
