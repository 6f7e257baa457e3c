package session

import (
	"crypto/sha256"
	"slices"
	"strings"
)

// A trace is a fingerprint of something that the proxy relayed to a client: a tool call's id, an answer, a line of it.
// A history that matches no known prefix, because its client summarised it, rewrote its beginning or handed a task to a
// sub-agent, is linked to its session by the traces it carries. Traces are keyed by the scope's seed, so no one finds
// anything by them outside of it.

const (
	callIDLen   = 12  // shorter call ids (call_1, 0) are not unique enough to link by
	answerLen   = 12  // shortest answer, in bytes, that links when quoted whole
	lineLen     = 32  // shortest line, in bytes, that links by itself
	linesMarked = 16  // lines of one answer that leave a trace: the first and the last half of that
	linesRead   = 192 // lines of one history that are looked up
	paragraphs  = 8   // ends of a text that may be a whole answer
)

func trace(seed Hash, kind byte, text string) Hash {
	return sha256.Sum256(slices.Concat(seed[:], []byte{kind}, []byte(text)))
}

// CallTraces gives the traces of tool call ids that are long enough to be unique.
func CallTraces(seed Hash, ids []string) []Hash {
	var out []Hash
	for _, id := range ids {
		if unique(id) {
			out = append(out, trace(seed, 'c', id))
		}
	}
	return out
}

func unique(callID string) bool { return len(callID) >= callIDLen }

// KeyTrace is where a session key's session is remembered.
func KeyTrace(seed Hash) Hash { return trace(seed, 'k', "") }

// AnsweredTrace remembers that a history got its answer.
func AnsweredTrace(head Hash) Hash { return trace(head, 'a', "") }

// RequestTrace remembers where a tenant's request of that id was logged. Only operators look it up, so it has no seed.
func RequestTrace(tenant, id string) Hash { return trace(Hash{}, 'r', tenant+"\x00"+id) }

// AnswerTraces gives the traces that a relayed answer leaves: its whole text, its lines, and the lines of the texts in
// its tool calls' arguments (the tasks of sub-agents).
func AnswerTraces(seed Hash, text string, arguments []string) []Hash {
	var out []Hash
	if t := strings.TrimSpace(text); len(t) >= answerLen {
		out = append(out, trace(seed, 't', t))
	}
	out = append(out, lineTraces(seed, ends(lines(text)))...)
	var args []string
	for _, a := range arguments {
		args = append(args, lines(a)...)
	}
	return append(out, lineTraces(seed, ends(args))...)
}

// HistoryTraces gives the traces to look up for a history that matched nothing: the call ids of its messages, the lines of its texts,
// and, for a side request, what may be a whole answer quoted at the end of a text.
func HistoryTraces(seed Hash, messages []Message, texts []string, purpose Purpose) []Hash {
	var out []Hash
	for _, text := range texts {
		out = append(out, wholeTraces(seed, text, purpose)...)
		out = append(out, lineTraces(seed, lines(text))...)
	}
	out = out[:min(len(out), linesRead)]
	for i := range messages {
		if len(out) > 2*linesRead {
			break
		}
		out = append(out, CallTraces(seed, messages[i].Calls)...)
	}
	return out
}

func wholeTraces(seed Hash, text string, purpose Purpose) []Hash {
	text = strings.TrimSpace(text)
	out := []Hash{trace(seed, 't', text)}
	if purpose == PurposeMain {
		return out
	}
	for rest := text; len(out) < paragraphs; {
		_, tail, found := strings.Cut(rest, "\n\n")
		if !found {
			break
		}
		rest = tail
		if t := strings.TrimSpace(tail); len(t) >= answerLen {
			out = append(out, trace(seed, 't', t))
		}
	}
	return out
}

// lines gives the lines of text that are long enough to link by.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= lineLen {
			out = append(out, line)
		}
		if len(out) == linesRead {
			break
		}
	}
	return out
}

func ends(all []string) []string {
	if len(all) <= linesMarked {
		return all
	}
	return append(all[:linesMarked/2:linesMarked/2], all[len(all)-linesMarked/2:]...)
}

func lineTraces(seed Hash, lines []string) []Hash {
	out := make([]Hash, len(lines))
	for i, l := range lines {
		out[i] = trace(seed, 'l', l)
	}
	return out
}
