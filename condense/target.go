package condense

import (
	"math"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// memoryUnit and minMemory set the room for memory, in tokens. See Memory.
const (
	memoryUnit = 600
	minMemory  = 2000
)

// Memory returns the room that pays for what is kept of a history of so many tokens in addition to what must stay: the newest units and
// quotes. It is the geometric mean of the history and memoryUnit. A longer history has more to come back to, but the next line is worth less
// than the one before it, while each costs the same at every request.
func Memory(history int) int { return max(minMemory, int(math.Sqrt(memoryUnit*float64(history)))) }

// memory returns the room for memory of a history, hidden messages included. tokens are those of the items of the view.
func (in *Input) memory(tokens []int) int {
	all := total(tokens)
	for i := range in.View.Applied {
		all += in.View.Applied[i].ForgottenTokens
	}
	return Memory(all)
}

// stays returns the tokens of the messages that a condensation keeps in any case: what is protected, and the head if that is not much larger
// than the room for memory.
func (s Settings) stays(in *Input, tokens []int) int {
	p := newPicker(in, tokens)
	p.protect()
	p.head(s.KeepFirst, session.Size{Events: unlimited, Tokens: p.kept.Tokens + 2*in.memory(tokens)})
	return p.kept.Tokens
}

// LeastMemory is the number of tokens below which a limit leaves too little of a history. By price, the shortest runs keep as much.
const LeastMemory = 2000

// Cramped returns what a limit of tokens that a request exceeds by a step leaves of its history, and whether that is too little: it is half of what
// system prompt and tools leave.
func Cramped(in Input) (memory int, is bool) {
	memory = max(in.Total-in.Fixed-promptTokens(&in), 0) / 2
	return memory, memory < LeastMemory
}

// limited returns the tokens that messages may have after a condensation by a limit: the system prompt, and half of what the limit leaves to the
// others. System prompt and tools cannot be condensed, so a limit below them leaves nothing.
func limited(in *Input, limit int) int {
	prompt := promptTokens(in)
	return prompt + max(limit-in.Fixed-prompt, 0)/2
}

// promptTokens returns the tokens of the system prompt.
func promptTokens(in *Input) (tokens int) {
	for i, n := range in.Measure(in.View.Items) {
		if in.View.Items[i].Kind != session.System {
			break
		}
		tokens += n
	}
	return tokens
}
