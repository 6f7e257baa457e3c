package ui

import (
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Fate is what became of a message on its way to the model. It is a class of the stylesheet, too.
type Fate string

// The fates.
const (
	Kept       Fate = "kept"       // as sent
	Trimmed    Fate = "trimmed"    // the model saw a part of it
	Replaced   Fate = "replaced"   // the model saw a stub in its place
	Stripped   Fate = "stripped"   // without its sealed reasoning
	Extended   Fate = "extended"   // with a text that the proxy added
	Summarised Fate = "summarised" // hidden; a summary that a model wrote stands for it
	Excerpted  Fate = "excerpted"  // hidden; lines of it are quoted
	Hidden     Fate = "hidden"     // hidden, and nothing stands for it
	LeftOut    Fate = "leftout"    // the condenser leaves it out of each request
)

var fateWords = map[Fate]string{
	Kept: "kept as sent", Trimmed: "trimmed", Replaced: "replaced by a stub", Stripped: "kept, without its reasoning", Extended: "kept, with a text added",
	Summarised: "hidden, summarised in the record", Excerpted: "hidden, excerpted in the record", Hidden: "hidden, nothing stands for it", LeftOut: "left out of each request",
}

// Words says the fate to a person.
func (f Fate) Words() string { return fateWords[f] }

// Shown reports whether the model saw anything of the message.
func (f Fate) Shown() bool {
	switch f {
	case Summarised, Excerpted, Hidden, LeftOut:
		return false
	}
	return true
}

// hiddenFate returns the fate of the messages that a condensation hides. The newest record stands for all that is hidden, so it decides whether
// a model summarised them or lines are quoted.
func hiddenFate(record *session.Condensation) Fate {
	switch {
	case record == nil || record.SummaryTokens == 0 && record.Summary == "":
		return Hidden
	case record.Model == "":
		return Excerpted
	}
	return Summarised
}

// speakers names who a message is from.
var speakers = map[session.Kind]string{
	session.System: "System", session.User: "Person", session.Agent: "Assistant", session.Action: "Assistant", session.Observation: "Result",
	session.Unreadable: "Unreadable",
}

// made says in words how a condensation was made.
var made = map[session.Made]string{
	session.MadeSummary: "summary", session.MadeExcerpts: "excerpts", session.MadePlain: "nothing stands for what is hidden",
	session.MadeProvisional: "provisional: the summary failed, the next condensation makes it", session.MadeTrim: "single messages trimmed",
}

// reasons say why a condensation was made.
var reasons = map[session.Reason]string{
	session.ReasonEconomics: "it pays: what it saves is more than what it costs",
	session.ReasonEvents:    "the limit on the number of messages was exceeded",
	session.ReasonTokens:    "the limit on tokens was exceeded",
	session.ReasonWindow:    "the history no longer fitted the model's window",
	session.ReasonRequest:   "someone asked for it",
	session.ReasonOverflow:  "upstream refused the history as too long",
	session.ReasonArrival:   "a message was too large when it arrived",
	session.ReasonSize:      "the body was too large for upstream",
	session.ReasonKnowledge: "a person's message named a topic that a text belongs to",
}

// purposes say what a thread is for.
var purposes = map[session.Purpose]string{
	session.PurposeMain: "conversation", session.PurposeTitle: "names the conversation", session.PurposeSuggestion: "suggests what to type next",
	session.PurposeCompaction: "the agent's own summary", session.PurposeKept: "kept by the provider", session.PurposeProbe: "probe",
}

// Reason says in words why a condensation was made.
func Reason(r session.Reason) string { return reasons[r] }
