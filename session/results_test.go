package session

import (
	"slices"
	"testing"
)

func TestSystemResults(t *testing.T) {
	t.Parallel()
	kinds := map[rune]Message{
		's': {Kind: System}, 'n': {Kind: System, Note: 1}, 'd': {Kind: System, Lasts: true}, 'c': {Kind: System, Attached: true}, 'x': {Kind: System, Spoken: Agent},
		'u': {Kind: User}, 'a': {Kind: Agent}, 't': {Kind: Action}, 'o': {Kind: Observation},
	}
	for history, want := range map[string][]int{
		"":            nil,
		"su":          nil, // the prompt
		"suas":        {3}, // the model is about to answer it
		"suasa":       {3},
		"suassas":     {3, 4, 6},
		"suast":       {3},
		"suasu":       nil,    // a note before what a person says
		"suasasu":     {3, 5}, // a person spoke instead of the model
		"suasusa":     nil,    // it follows what the person said
		"sutos":       nil,    // a note beside a result
		"sutosas":     {6},
		"suansa":      {4}, // what replaces each other is a note
		"suadsa":      {4}, // a definition
		"suacsa":      {4}, // a compaction
		"suaxxsa":     {5}, // what was added for this request
		"suana":       nil,
		"suanasu":     nil, // no result was answered before
		"suasasuasua": {3, 5, 8},
	} {
		var messages []Message
		for _, k := range history {
			messages = append(messages, kinds[k])
		}
		if got := SystemResults(messages); !slices.Equal(got, want) {
			t.Errorf("%s: results are at %v, want %v", history, got, want)
		}
	}
}

// TestSystemResultsAreStable: a message that was a result stays one when the history grows, except for the first result if the user speaks
// next.
func TestSystemResultsAreStable(t *testing.T) {
	t.Parallel()
	kinds := []Kind{System, User, Agent, Action, Observation}
	const length = 7
	total := 1
	for range length {
		total *= len(kinds)
	}
	for n := range total {
		messages := make([]Message, length)
		for i := range messages {
			messages[i].Kind, n = kinds[n%len(kinds)], n/len(kinds)
		}
		before, after := SystemResults(messages[:length-1]), SystemResults(messages)
		for _, i := range before {
			answered := slices.ContainsFunc(before, func(at int) bool {
				return at < i && slices.ContainsFunc(messages[at:i], func(m Message) bool { return m.Kind.ByModel() })
			})
			spoke := messages[length-1].Kind == User || messages[length-1].Kind == Observation
			if !slices.Contains(after, i) && (answered || !spoke) {
				t.Errorf("%v: message %d is no result any more", messages, i)
			}
		}
	}
}
