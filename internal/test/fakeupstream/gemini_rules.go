package fakeupstream

import (
	"net/http"
	"slices"
)

// judgeGemini checks a request, regardless of its size. The rules and the words are those of
// https://ai.google.dev/gemini-api/docs/function-calling and of the API's answers, as issues of its clients quote them.
func (x *exchange) judgeGemini(v *verdict) {
	v.fail(checkContentType(x.r.Header))
	v.refuseIf(x.top.kind != kindObject, "", "", "Invalid JSON payload received. Expected an object.")
	v.refuseIf(len(x.history) == 0, "", "", "* GenerateContentRequest.contents: contents is not specified\n")
	if !x.server.options.serves(x.req.Model) {
		v.fail(&APIError{http.StatusNotFound, "models/" + x.req.Model + " is not found for API version v1beta, or is not supported for generateContent.",
			"NOT_FOUND", "", ""})
	}
	for n, content := range x.history {
		v.geminiContent(n, content, x.server.options.Strict)
	}
	v.declarations(x.top.at("tools"))
	for n := 1; n < len(x.history) && x.server.options.Alternates; n++ {
		speaks := func(n int) bool { return x.history[n].at("role").text == "model" }
		v.refuseIf(speaks(n) && speaks(n-1), "", "", "Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
	}
	v.geminiTurns(x.history)
}

// partMembers are the members of a part, one of the first row in each.
var partMembers = []string{
	"text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult",
	"thought", "thoughtSignature", "videoMetadata",
}

func (v *verdict) geminiContent(n int, content value, strict bool) {
	role := content.at("role").text
	v.refuseIf(role != "" && role != "user" && role != "model", "", "", "Please use a valid role: user, model.")
	parts := content.at("parts").elements
	v.refuseIf(len(parts) == 0, "", "", "* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", n)
	unknown := firstUnknown(content, []string{"role", "parts"})
	for i, p := range parts {
		isData := slices.ContainsFunc(partMembers[:7], func(key string) bool { return p.at(key).kind != kindAbsent })
		v.refuseIf(!isData, "", "", "* GenerateContentRequest.contents[%d].parts[%d].data: required oneof field 'data' must have one initialized field\n", n, i)
		if key := firstUnknown(p, partMembers); unknown == "" {
			unknown = key
		}
		for _, key := range []string{"functionCall", "functionResponse"} {
			v.refuseIf(p.at(key).given() && p.at(key, "name").text == "", "", "", "* GenerateContentRequest.contents[%d].parts[%d].%s.name: Name cannot be empty.\n", n, i, key)
		}
		response := p.at("functionResponse")
		v.refuseIf(response.given() && response.at("response").kind != kindObject, "", "", "Invalid value at 'contents[%d].parts[%d].function_response.response'", n, i)
	}
	v.refuseIf(strict && unknown != "", "", "", "Invalid JSON payload received. Unknown name %q at 'contents[%d]': Cannot find field.", unknown, n)
}

// declarations refuses functions that are declared twice, and a second list of functions.
func (v *verdict) declarations(tools value) {
	lists, names := 0, map[string]bool{}
	for _, tool := range tools.elements {
		all := tool.at("functionDeclarations").elements
		if len(all) > 0 {
			lists++
		}
		for _, f := range all {
			name := f.at("name").text
			v.refuseIf(names[name], "", "", "Duplicate function declaration found: %s", name)
			names[name] = true
		}
	}
	v.refuseIf(lists > 1, "", "", "Multiple tools are supported only when they are all search tools.")
}

// geminiTurn is one or more contents of the same role.
type geminiTurn struct {
	model bool
	parts []value
}

// turnsOf returns the turns of a history.
func turnsOf(contents []value) (turns []geminiTurn) {
	for _, content := range contents {
		model := content.at("role").text == "model"
		if n := len(turns) - 1; n < 0 || turns[n].model != model {
			turns = append(turns, geminiTurn{model: model})
		}
		last := &turns[len(turns)-1]
		last.parts = append(last.parts, content.at("parts").elements...)
	}
	return turns
}

// named returns what the parts with a member hold in it.
func (t geminiTurn) named(member string) (all []value) {
	for _, p := range t.parts {
		if of := p.at(member); of.given() {
			all = append(all, of)
		}
	}
	return all
}

// geminiTurns checks that calls follow the user, and that their results follow them, as many and in order.
func (v *verdict) geminiTurns(contents []value) {
	turns := turnsOf(contents)
	for n, turn := range turns {
		calls, results := turn.named("functionCall"), turn.named("functionResponse")
		switch {
		case turn.model:
			v.refuseIf(len(calls) > 0 && n == 0, "", "", "Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
			v.refuseIf(len(calls) > 0 && n+1 < len(turns) && len(turns[n+1].named("functionResponse")) == 0, "", "",
				"Please ensure that function response turn comes immediately after a function call turn.")
			v.refuseIf(n == len(turns)-1, "", "", "Please ensure that multiturn requests end with a user turn or a function response turn.")
		case len(results) > 0:
			v.refuseIf(n == 0, "", "", "Please ensure that function response turn comes immediately after a function call turn.")
			if n > 0 {
				v.geminiResults(turns[n-1].named("functionCall"), results)
			}
		}
	}
}

// geminiResults checks the results of a step. Gemini CLI sends each of them twice when it resumes a session.
func (v *verdict) geminiResults(calls, results []value) {
	results = slices.CompactFunc(results, func(a, b value) bool { return a.at("id").given() && string(a.raw) == string(b.raw) })
	v.refuseIf(len(calls) != len(results), "", "",
		"Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	for i := 0; i < min(len(calls), len(results)); i++ {
		id, name := results[i].at("id").text, results[i].at("name").text
		v.refuseIf(id != "" && calls[i].at("id").given() && id != calls[i].at("id").text, "", "", "Function response %q does not match function call %q.", id, calls[i].at("id").text)
		v.refuseIf(name != calls[i].at("name").text, "", "", "Function response %q does not match function call %q.", name, calls[i].at("name").text)
	}
}

// dummySignatures are accepted for calls that Gemini has not made.
var dummySignatures = []string{"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}

// checkSignatures checks that in the current turn, which begins with the user's last words, the first call of each step has its signature. It
// knows only the server's own answers.
func (x *exchange) checkSignatures(v *verdict) {
	if x.server.options.Seals == "" || x.req.Summary {
		return
	}
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	turns := turnsOf(x.history)
	current := 0
	for n, turn := range turns {
		if !turn.model && len(turn.named("functionResponse")) < len(turn.parts) {
			current = n
		}
	}
	for n, turn := range turns {
		i := slices.IndexFunc(turn.parts, func(p value) bool { return p.at("functionCall").given() })
		if i < 0 {
			continue
		}
		part := turn.parts[i]
		call, signature := part.at("functionCall"), part.at("thoughtSignature").text
		v.refuseIf(n > current && signature == "" && x.server.kept.sealed[callKey(call)], "", "",
			"Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing "+
				"thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. "+
				"Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", call.at("name").text, n)
		v.refuseIf(signature != "" && !slices.Contains(dummySignatures, signature) && signature != signatureOf(part), "", "", "Corrupted thought signature.")
	}
}
