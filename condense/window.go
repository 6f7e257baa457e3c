package condense

import "github.com/dewpoint-proxy/dewpoint/session"

// ConversationWindow condenses on request only, and after an overflow: it keeps what a conversation can not do without
// (system messages, the first and the newest user message, the newest unit, a summary) and at least the newest half of
// the rest. It makes no summary.
type ConversationWindow struct{}

var _ Condenser = ConversationWindow{}

// Name implements Condenser.
func (ConversationWindow) Name() string { return "conversation_window" }

// Condense implements Condenser.
func (w ConversationWindow) Condense(in Input) Decision {
	if in.Need.Reason == "" {
		return Decision{}
	}
	p := newPicker(in.View, in.Measure(in.View.Items))
	p.summaries()
	p.protect()
	p.firstUser()
	p.newestHalf()
	c, ok := p.cut(in)
	if !ok || c.Kept.Tokens >= c.Before.Tokens {
		return Decision{}
	}
	return Decision{Job: &cutJob{need: in.Need, condensation: c.condensation(in.Need.Reason, w.Name())}}
}

// firstUser picks the first user message.
func (p *picker) firstUser() {
	for i, item := range p.view.Items {
		if item.Index >= 0 && item.Kind == session.User {
			p.pick(p.block(i))
			return
		}
	}
}

// newestHalf picks blocks from the end, until half of what was not picked yet is, or more where a block is not to be
// split.
func (p *picker) newestHalf() {
	rest := p.size(0, len(p.view.Items)).Events
	for end, picked := len(p.view.Items), 0; end > 0 && 2*picked < rest; {
		from, to := p.block(end - 1)
		picked += p.size(from, to).Events
		p.pick(from, to)
		end = from
	}
}
