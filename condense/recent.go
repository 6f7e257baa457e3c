package condense

import "github.com/dewpoint-proxy/dewpoint/session"

// RecentEvents shows the beginning of a history and its newest events. It forgets nothing: every request's view is made
// anew.
type RecentEvents struct {
	KeepFirst int // messages at the beginning that stay, system messages not counted
	MaxEvents int // events in all; exceeded only by what must stay (system messages, newest user message, last unit)
}

var _ Condenser = RecentEvents{}

// Name implements Condenser.
func (RecentEvents) Name() string { return "recent_events" }

// Condense implements Condenser.
func (r RecentEvents) Condense(in Input) Decision {
	if len(in.View.Items) <= r.MaxEvents {
		return Decision{}
	}
	p := newPicker(in.View, nil)
	p.protect()
	p.summaries()
	target := session.Size{Events: r.MaxEvents, Tokens: unlimited}
	p.head(in.Codec, r.KeepFirst, target)
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
