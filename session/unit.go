package session

import (
	"iter"
	"slices"
)

// Unit is what a cut must not split: the messages at indexes From to To-1 of a history. It is a single message, or an
// assistant message with tool calls and all their results. Sealed reasoning does not join messages into a unit: a
// condensation leaves out the sealed reasoning that was made before it (Condensation.Stripped).
type Unit struct {
	From, To int
	Open     bool // a call in it has no result yet
}

// Units splits a history into units, in order and without gaps. A system message is a separate unit unless it is inside
// another one. Results that answer no call of the unit before them (orphans, late duplicates) stay with the message before
// them, so that a client's mistakes are passed on unchanged.
func Units(messages []Message) []Unit {
	units := make([]Unit, 0, len(messages))
	for i := 0; i < len(messages); {
		u := exchangeAt(messages, i)
		units = append(units, u)
		i = u.To
	}
	return units
}

// exchangeAt returns the unit that begins with message i. It ends before the next message that is not a result. Only
// results up to there count, because ids may be reused later in a history.
func exchangeAt(messages []Message, i int) Unit {
	u := Unit{From: i, To: i + 1}
	if messages[i].Kind == System {
		return u
	}
	for at := u.To; at < len(messages) && (messages[at].Kind == Observation || messages[at].Kind == System); at++ {
		if messages[at].Kind == Observation {
			u.To = at + 1
		}
	}
	results := messages[i+1 : u.To]
	u.Open = slices.ContainsFunc(messages[i].Calls, func(id string) bool {
		return !slices.ContainsFunc(results, func(m Message) bool { return m.Result == id })
	})
	return u
}

// Answers iterates over the calls that have a result: the index of the call's message, and that of the first message with its result. If a
// later call reuses an id before there is a result, the earlier call has none. The result of a provider's tool may be in an assistant
// message.
func Answers(messages []Message) iter.Seq2[int, int] {
	return func(yield func(call, result int) bool) {
		waiting := map[string]int{}
		for i := range messages {
			m := &messages[i]
			if call, ok := waiting[m.Result]; ok && (m.Kind == Observation || m.Result != "") {
				delete(waiting, m.Result)
				if !yield(call, i) {
					return
				}
			}
			for _, id := range m.Calls {
				waiting[id] = i
			}
		}
	}
}

// answer holds the positions of a call and its result.
type answer struct{ call, result int }

// lateAnswers returns the calls whose result is in a later unit. Most histories have no open unit, and therefore none.
func lateAnswers(h *History, units []Unit, numbers []int) (late []answer) {
	if !slices.ContainsFunc(units, func(u Unit) bool { return u.Open }) {
		return nil
	}
	for call, result := range Answers(h.Messages) {
		a := answer{call: h.Pos(call), result: h.Pos(result)}
		if numbers[a.call] != numbers[a.result] {
			late = append(late, a)
		}
	}
	return late
}
