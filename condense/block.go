package condense

import "github.com/dewpoint-proxy/dewpoint/session"

// blocks are the history's units, with those joined that a client tore apart: a call whose result comes only after other
// messages. A cut forgets a block whole or not at all, so that it
// never adds a defect to those the client sent. Calls that are already forgotten (not alive) bind nothing.
func blocks(messages []session.Message, alive []bool) []session.Unit {
	units := session.Units(messages)
	last := answers(messages, alive)
	joined := units[:0:0]
	for i := 0; i < len(units); {
		b := units[i]
		end := reach(messages, units[i:], last)
		for i++; i < len(units) && units[i].From < end; i++ {
			b.To, b.Open = units[i].To, b.Open || units[i].Open
			end = max(end, reach(messages, units[i:], last))
		}
		joined = append(joined, b)
	}
	return joined
}

// answers tells for each message the index of the last message that answers one of its calls, its own index if none
// does. Only the first answer counts, and a call that uses an id again ends the wait for the older one.
func answers(messages []session.Message, alive []bool) []int {
	last := make([]int, len(messages))
	asked := map[string]int{}
	for i := range messages {
		m := &messages[i]
		last[i] = i
		if by, ok := asked[m.Result]; ok && m.Kind == session.Observation {
			last[by] = i
			delete(asked, m.Result)
		}
		for _, id := range m.Calls {
			delete(asked, id)
			if alive[i] {
				asked[id] = i
			}
		}
	}
	return last
}

// reach is the end of what must stay together with the first of units.
func reach(messages []session.Message, units []session.Unit, last []int) int {
	u := units[0]
	end := u.To
	for i := u.From; i < u.To; i++ {
		end = max(end, last[i]+1)
	}
	return end
}
