package session

import (
	"crypto/sha256"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
)

// A trace is a hash of something that the proxy relayed to a client or logged: the id of a tool call, an answer, or a line of an answer. The
// store maps it to a place. If no prefix of a history is known, because its client summarised it, rewrote its beginning or gave a task to
// a sub-agent, the traces of its content link it to its session. The scope's seed is part of the hash, so traces never match in other scopes.

// Bounds of traces. Lengths are in bytes.
const (
	minCallID = 12 // shorter call ids (call_1, 0) are not unique enough to link a history
	shortID   = 9  // except for those of this length that look random, which Mistral gives (D681PevKs)
	minAnswer = 12 // shortest answer that links a history quoting it whole
	minLine   = 32 // shortest line that links a history

	maxMarkedLines = 8   // lines of one answer that leave a trace, half of them from its beginning and half from its end
	maxReadLines   = 192 // texts and lines of one history that are looked up
	maxReadCalls   = 32  // newest calls of one history that are looked up
	maxQuotes      = 8   // traces of one text that are looked up to find an answer quoted at its end
)

// trace returns the trace of a text. Each kind of trace has a byte of its own, because the same text may be, for example, a line and a
// whole answer.
func trace(seed Hash, kind byte, text string) Hash {
	return sha256.Sum256(slices.Concat(seed[:], []byte{kind}, []byte(text)))
}

// CallTraces returns the traces of the unique ids among those of an answer's tool calls.
func CallTraces(seed Hash, ids []string) []Hash {
	var out []Hash
	for _, id := range ids {
		if unique(id) {
			out = append(out, trace(seed, 'c', id))
		}
	}
	return out
}

// firstCallTraces returns, for the same ids as CallTraces, traces that keep pointing to the place where a call with the id was first
// relayed. If the two point to different places, several calls had the id.
func firstCallTraces(seed Hash, ids []string) (out []Hash) {
	for _, id := range ids {
		if unique(id) {
			out = append(out, trace(seed, 'f', id))
		}
	}
	return out
}

// unique reports whether a call id is unique: long and not a name with an index, or nine letters of both cases and digits.
func unique(callID string) bool {
	if len(callID) == shortID {
		return randomID.MatchString(callID) && strings.ToLower(callID) != callID && strings.ToUpper(callID) != callID
	}
	return len(callID) >= minCallID && !indexedID.MatchString(callID)
}

var (
	randomID  = regexp.MustCompile(`^[A-Za-z0-9]*[0-9][A-Za-z][A-Za-z0-9]*$`) // a digit before a letter, unlike in a name with a number
	indexedID = regexp.MustCompile(`^functions\.[^:]+:[0-9]+$`)               // Kimi's, which count from 0 in each conversation
)

// KeyTrace returns the trace that remembers the session of a session key.
func KeyTrace(seed Hash) Hash { return trace(seed, 'k', "") }

// AnsweredTrace returns the trace that remembers that a history was answered.
func AnsweredTrace(head Hash) Hash { return trace(head, 'a', "") }

// RequestKey returns what a thread notes of the id of a request, so that operators can find the position at which it was logged.
func RequestKey(id string) uint64 {
	h := trace(Hash{}, 'r', id)
	return binary.LittleEndian.Uint64(h[:])
}

// AnswerTraces returns the traces of an answer's text: of the whole text, of its lines, and of the lines in the arguments of its tool calls,
// such as the tasks of sub-agents.
func AnswerTraces(seed Hash, text string, arguments []string) []Hash {
	var out []Hash
	if t := strings.TrimSpace(text); len(t) >= minAnswer {
		out = append(out, trace(seed, 't', t))
	}
	out = append(out, lineTraces(seed, ends(lines(text)))...)
	var args []string
	for _, a := range arguments {
		args = append(args, lines(a)...)
	}
	return append(out, lineTraces(seed, ends(args))...)
}

// textClues returns the clues to look up for the texts of a history of which no prefix is known: one for each line, and one for each text as
// a whole answer. For a side request, it adds clues for an answer that is quoted at the end of a text.
func textClues(seed Hash, texts []string, purpose Purpose) (out []clue) {
	for _, text := range texts {
		for _, h := range slices.Concat(wholeTraces(seed, text, purpose), lineTraces(seed, lines(text))) {
			out = append(out, clue{h})
		}
	}
	return out[:min(len(out), maxReadLines)]
}

// wholeTraces returns the trace of a text as a whole answer and, for a side request, those of the rest of the text after each empty line.
func wholeTraces(seed Hash, text string, purpose Purpose) []Hash {
	text = strings.TrimSpace(text)
	out := []Hash{trace(seed, 't', text)}
	if purpose == PurposeMain {
		return out
	}
	for len(out) < maxQuotes {
		_, tail, found := strings.Cut(text, "\n\n")
		if !found {
			break
		}
		text = tail
		if t := strings.TrimSpace(tail); len(t) >= minAnswer {
			out = append(out, trace(seed, 't', t))
		}
	}
	return out
}

// lines returns the lines of a text that are long enough to link a history.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= minLine {
			out = append(out, line)
		}
		if len(out) == maxReadLines {
			break
		}
	}
	return out
}

// ends returns the first and the last lines, maxMarkedLines in total.
func ends(lines []string) []string {
	const half = maxMarkedLines / 2
	if len(lines) <= maxMarkedLines {
		return lines
	}
	return slices.Concat(lines[:half], lines[len(lines)-half:])
}

func lineTraces(seed Hash, lines []string) []Hash {
	out := make([]Hash, len(lines))
	for i, line := range lines {
		out[i] = trace(seed, 'l', line)
	}
	return out
}
