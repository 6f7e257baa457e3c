package session

import "slices"

// Unit is what a cut may never split: the messages at indexes [From, To) of a history. A unit is a single message, an
// assistant message with tool calls and all its results. Sealed reasoning joins nothing: where a history was condensed it is
// left out of what was there before (Condensation.Stripped).
type Unit struct {
	From, To int
	Open     bool // a call in it has no result yet
}

// Units splits a history into units, in order, without gaps. A system message is a unit of its own, unless it stands
// inside another one. Results that answer no call of the unit before them (orphans, late duplicates) stay with the
// message before them, so that a client's own defect is passed on as it was.
func Units(messages []Message) []Unit {
	var units []Unit
	for i := 0; i < len(messages); {
		u := exchangeAt(messages, i)
		units = append(units, u)
		i = u.To
	}
	return units
}

// exchangeAt is the message at i with the results that follow it, up to the next other message. Ids may be used again
// later in a history, so only these results count.
func exchangeAt(messages []Message, i int) Unit {
	u := Unit{From: i, To: i + 1}
	if messages[i].Kind == System {
		return u
	}
	for {
		at := pastSystem(messages, u.To)
		if at == len(messages) || messages[at].Kind != Observation {
			break
		}
		u.To = at + 1
	}
	results := messages[i+1 : u.To]
	u.Open = slices.ContainsFunc(messages[i].Calls, func(id string) bool {
		return !slices.ContainsFunc(results, func(m Message) bool { return m.Result == id })
	})
	return u
}

// pastSystem is the index of the first message from i on that is no system message.
func pastSystem(messages []Message, i int) int {
	for i < len(messages) && messages[i].Kind == System {
		i++
	}
	return i
}

// answer is the position of a call and that of its result.
type answer struct{ call, result int }

// lateAnswers lists the calls that are answered only in a later unit. Only the first result counts, and a call that uses an id
// again ends the wait for the older one. Messages are looked at from the first open unit on; most histories have none.
func lateAnswers(h *History, units []Unit) []answer {
	type waiting struct{ position, unit int }
	var late []answer
	asked := map[string]waiting{}
	for n, u := range units {
		if !u.Open && len(asked) == 0 {
			continue
		}
		for i := u.From; i < u.To; i++ {
			m := &h.Messages[i]
			if by, ok := asked[m.Result]; ok && m.Kind == Observation {
				delete(asked, m.Result)
				if by.unit != n {
					late = append(late, answer{by.position, h.Pos(i)})
				}
			}
			for _, id := range m.Calls {
				delete(asked, id)
				if u.Open {
					asked[id] = waiting{h.Pos(i), n}
				}
			}
		}
	}
	return late
}

// lastUnit is the unit that a history's last chained message belongs to: Units' last, without going through them all.
func lastUnit(messages []Message) Unit {
	u := Unit{From: pastSystem(messages, 0), To: len(messages)}
	for i := len(messages) - 1; i >= 0; i-- {
		if opens(&messages[i]) {
			u.From = i
			break
		}
	}
	return u
}

// opens reports whether a message begins a unit.
func opens(m *Message) bool { return m.Kind != System && m.Kind != Observation }
