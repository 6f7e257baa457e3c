package account

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// missWords says why a cache was missed.
var missWords = map[Miss]string{
	MissFirst:      "no earlier request of the conversation is known",
	MissModel:      "the model is another than in the request before, and each has a cache of its own",
	MissEndpoint:   "the request went to another server, or with another key, than the one before",
	MissTools:      "the definitions of tools changed, which precede all messages",
	MissSystem:     "the system prompt changed",
	MissCondensed:  "Dewpoint condensed the history, or replaced a summary, since the request before",
	MissWhole:      "the history was condensed before, and went whole this time",
	MissConcurrent: "the request began before the one before it was answered",
	MissExpired:    "the request came later than upstream keeps an idle prefix",
	MissShort:      "the prompt is too short to be cached",
	MissUnmarked:   "the client marked nothing to be cached",
	MissMarks:      "the client's cache marks moved: the newest stands before what was cached, or too far behind it to find it",
	MissUnreported: "upstream did not report what it read",
	MissProvider:   "nothing that is known explains it: upstream dropped the prefix, or another of its servers answered",
}

// splitWords says why a thread began.
var splitWords = map[session.Cause]string{
	session.CauseUser:     "the client changed a user's message",
	session.CauseAnswer:   "the client changed an answer of the model",
	session.CauseResult:   "the client changed a tool's result",
	session.CauseLeftOut:  "the client left messages out",
	session.CauseInserted: "the client inserted messages",
	session.CauseSide:     "it is a request beside the conversation, such as for a title",
	session.CauseUnknown:  "its history is not known under its key and credential",
	session.CauseUnread:   "the log could not be read",
}

// Words says in words why a cache was missed. A cause that is not known stays as it is.
func (m Miss) Words() string {
	if words, known := missWords[m]; known {
		return words
	}
	return wordsOfSplit(session.Cause(m))
}

// LeftWords says in words why a thread began, and with which message, not counting system messages; 0: that is not known.
func LeftWords(cause string, at int) string {
	if at == 0 {
		return wordsOfSplit(session.Cause(cause))
	}
	return fmt.Sprintf("%s, from message %d on (system messages not counted)", wordsOfSplit(session.Cause(cause)), at)
}

// wordsOfSplit says in words why a thread began. A cause that is not known stays as it is.
func wordsOfSplit(c session.Cause) string {
	if words, known := splitWords[c]; known {
		return words
	}
	return string(c)
}
