package setup

import (
	"fmt"
	"strconv"
	"strings"
)

// Answers are what a user has chosen.
type Answers struct {
	Upstream string // base URL; empty: the providers, by the protocol of each request
	Local    string // name of the model server at Upstream; empty: it is none on this machine
	Summary  *Model // that writes summaries; nil: excerpts, for which no model is called
	State    string // file; empty: the default
}

// Model is a model that writes summaries.
type Model struct {
	Name    string
	BaseURL string
	API     string // as in llms.*.api; empty: chat
	Key     string // variable that holds the key; empty: none is needed
}

// String describes the model.
func (m Model) String() string { return m.Name + " at " + m.BaseURL }

// File returns the configuration, with comments.
func (a Answers) File() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# Dewpoint's configuration, written by 'dewpoint init'. All keys have defaults;")
	say("# docs/configuration.md lists them. Check a change with 'dewpoint doctor'; a")
	say("# running proxy takes most changes at once.")
	say("")
	a.upstream(say)
	say("")
	a.condenser(say)
	say("")
	if a.State != "" {
		say("store:\n  path: %s   # sessions are kept here", quoted(a.State))
	} else {
		say("# Sessions are kept in the user's state folder. Another file:")
		say("# store: {path: /somewhere/state.db}")
	}
	say("")
	say("# What requests may cost in a month. Beyond it they are refused.")
	say("# limits: {tenant: {budget: {usd: 50, period: month}}}")
	return b.String()
}

func (a Answers) upstream(say func(string, ...any)) {
	switch {
	case a.Upstream == "":
		say("# Requests go to their provider with the key that the agent sends. To send all")
		say("# of them elsewhere:")
		say("# upstream: {base_url: https://gateway.example/v1}")
	case a.Local != "":
		say("upstream:\n  base_url: %s   # %s on this machine", quoted(a.Upstream), a.Local)
		if strings.HasSuffix(a.Upstream, ":8080/v1") {
			say("listen: 127.0.0.1:8090   # because the model server has port 8080")
		}
	default:
		say("upstream:\n  base_url: %s   # with the key that the agent sends", quoted(a.Upstream))
	}
}

func (a Answers) condenser(say func(string, ...any)) {
	const ceilings = "  # max_tokens: 0.75    # a ceiling in any case: this share of the model's window"
	if a.Summary == nil {
		say("condenser:")
		say("  type: excerpts        # hidden messages are quoted in part; no model is called")
		say("  trigger: economics    # when it pays, by the model's prices")
		say(ceilings)
		return
	}
	m := a.Summary
	say("llms:\n  summaries:            # the model that writes summaries")
	say("    model: %s", quoted(m.Name))
	say("    base_url: %s", quoted(m.BaseURL))
	if m.API != "" {
		say("    api: %s", m.API)
	}
	if m.Key != "" {
		say("    api_key: ${%s}   # from the environment of Dewpoint's start", m.Key)
	}
	say("# If its price is not known to Dewpoint, set it, in USD per million tokens:")
	say("# models: {%s: {price: {input: 0.25, output: 2}}}", quoted(m.Name))
	say("")
	say("condenser:")
	say("  type: llm             # hidden messages are summarised")
	say("  llm_config: summaries")
	say("  trigger: economics    # when it pays, by the model's prices")
	say(ceilings)
}

// quoted returns a text as a value in YAML. ${ would be taken for a variable.
func quoted(text string) string {
	return strconv.Quote(strings.ReplaceAll(text, "${", "$${"))
}
