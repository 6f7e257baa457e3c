package session

// Unit is what a cut may never split: the messages at indexes [From, To) of a history. A unit is a single message, an
// assistant message with tool calls and all its results, or a whole reasoning tool loop.
type Unit struct {
	From, To int
	Open     bool // a call in it has no result yet
}

// Units splits a history into units, in order, without gaps. System messages are units of their own, except inside
// another unit. Results that answer no call of the unit before them (orphans, duplicates of an older unit) stay with the
// message before them, so that a client's own defect is passed on as it was.
func Units(messages []Message) []Unit {
	var units []Unit
	for i := 0; i < len(messages); {
		u := unitAt(messages, i)
		units = append(units, u)
		i = u.To
	}
	return units
}

func unitAt(messages []Message, i int) Unit {
	u := exchangeAt(messages, i)
	if !messages[i].Loop || len(messages[i].Calls) == 0 {
		return u
	}
	for u.To < len(messages) && len(messages[u.To].Calls) > 0 {
		more := exchangeAt(messages, u.To)
		u.To, u.Open = more.To, u.Open || more.Open
	}
	return u
}

// exchangeAt is the message at i with the results that directly follow it. Ids may be used again later in a history, so
// only results before the next other message count.
func exchangeAt(messages []Message, i int) Unit {
	u := Unit{From: i, To: i + 1}
	if messages[i].Kind == System {
		return u
	}
	for u.To < len(messages) && messages[u.To].Kind == Observation {
		u.To++
	}
	for _, id := range messages[i].Calls {
		u.Open = u.Open || !answered(messages[i+1:u.To], id)
	}
	return u
}

func answered(results []Message, id string) bool {
	for i := range results {
		if results[i].Result == id {
			return true
		}
	}
	return false
}
