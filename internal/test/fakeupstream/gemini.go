package fakeupstream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// geminiCall is what the path of a request of Gemini's API says.
type geminiCall struct {
	method, model string
	assist        bool // of Code Assist, which wraps the request and the answer
}

// speaksGemini returns the call if the path is one of Gemini's API.
func (x *exchange) speaksGemini() (c geminiCall, is bool) {
	path := x.r.URL.Path
	name, method, is := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":")
	return geminiCall{method, name, name == "v1internal"}, is
}

// decodeGemini takes from the body what can be decoded.
func (x *exchange) decodeGemini(c geminiCall) {
	if c.assist {
		c.model = x.top.at("model").text
		x.top = x.top.at("request")
	}
	if inner := x.top.at("generateContentRequest"); inner.given() {
		x.top = inner
	}
	x.history = x.top.at("contents").elements
	x.req.Model, x.req.Messages, x.req.Tools = c.model, raws(x.history), x.top.at("tools").raw
	x.req.Stream = c.method == "streamGenerateContent" && x.r.URL.Query().Get("alt") == "sse"
}

var geminiEndpoints = map[string]endpoint{
	"generateContent":       {http.MethodPost, (*exchange).generate, checks{(*exchange).judgeGemini, admit(geminiLimits), (*exchange).checkSignatures}},
	"streamGenerateContent": {http.MethodPost, (*exchange).generate, checks{(*exchange).judgeGemini, admit(geminiLimits), (*exchange).checkSignatures}},
	"countTokens":           {http.MethodPost, (*exchange).countGemini, checks{(*exchange).judgeGemini}},
}

// checkGoogleKey accepts a key in x-goog-api-key, in the query, or as a bearer token.
func (x *exchange) checkGoogleKey(header http.Header, keys []string) *APIError {
	if slices.Contains(keys, header.Get("X-Goog-Api-Key")) || slices.Contains(keys, x.r.URL.Query().Get("key")) || checkKey(header, keys) == nil {
		return nil
	}
	return refuse("", "", "API key not valid. Please pass a valid API key.")
}

func geminiLimits(s size) *APIError {
	if s.prompt > s.window {
		return refuse("", "", "The input token count (%d) exceeds the maximum number of tokens allowed (%d).", s.prompt, s.window)
	}
	return nil
}

// countGemini answers with the number of tokens of a request.
func (x *exchange) countGemini() { x.sendJSON(`{"totalTokens":%d}`, x.measure().prompt) }

// generate answers a request. Answers are scripted in OpenAI's format and sent in Gemini's. Calls of Gemini 2 have no ids.
// https://ai.google.dev/api/generate-content
func (x *exchange) generate() {
	words := map[string]string{"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
	x.respond(func(a Answer) reply {
		message := a.message()
		parts := geminiParts(message, !strings.Contains(x.req.Model, "gemini-2"))
		if !x.req.Summary {
			parts = x.signParts(parts)
		}
		return x.candidate(a, words[a.finishReason(message)], parts)
	})
}

// geminiParts translates an assistant message to parts.
func geminiParts(message value, ids bool) (parts []value) {
	if text := contentText(message); text != "" {
		parts = append(parts, object("text", text))
	}
	for _, call := range message.at("tool_calls").elements {
		args := json.RawMessage(call.at("function", "arguments").text)
		if parse(args).kind != kindObject {
			args = build("arguments", string(args))
		}
		function := []any{"name", call.at("function", "name"), "args", args}
		if ids {
			function = append([]any{"id", call.at("id")}, function...)
		}
		parts = append(parts, object("functionCall", build(function...)))
	}
	return parts
}

// candidate returns the reply with these parts. In a stream, texts arrive in pieces, and the last event has the reason and the usage. Without
// events, a stream is a list of the same pieces.
func (x *exchange) candidate(a Answer, finish string, parts []value) reply {
	prompt := append([]json.RawMessage{x.top.at("systemInstruction").raw}, x.req.Messages...)
	used := x.bill(a, x.top.at("generationConfig", "responseJsonSchema"), prompt, parts...)
	usage := build("promptTokenCount", used.Prompt, "cachedContentTokenCount", used.Cached, "candidatesTokenCount", used.Completion,
		"thoughtsTokenCount", 0, "totalTokenCount", used.Prompt+used.Completion)
	call, _ := x.speaksGemini()
	piece := func(parts []json.RawMessage, finish string) json.RawMessage {
		candidate := []any{"content", build("parts", parts, "role", "model"), "index", 0}
		if finish != "" {
			candidate = append(candidate, "finishReason", finish)
		}
		out := []any{"candidates", []json.RawMessage{build(candidate...)}, "modelVersion", x.req.Model, "responseId", fmt.Sprintf("r%06d", x.req.Index)}
		if finish != "" && !a.OmitUsage {
			out = append(out, "usageMetadata", usage)
		}
		if call.assist {
			return build("response", build(out...), "traceId", "t")
		}
		return build(out...)
	}
	pieces := func(runes int) (all []json.RawMessage) {
		for _, part := range parts {
			for _, text := range pieceTexts(part, runes) {
				all = append(all, piece([]json.RawMessage{text}, ""))
			}
		}
		return append(all, piece([]json.RawMessage{build("text", "")}, finish))
	}
	whole := piece(raws(parts), finish)
	if call.method == "streamGenerateContent" {
		whole = mustJSON(pieces(cmp.Or(a.ChunkRunes, x.server.options.ChunkRunes)))
	}
	return reply{whole, func(runes int, add func(event []byte)) {
		for _, p := range pieces(runes) {
			add(fmt.Appendf(nil, "data: %s\r\n\r\n", p))
		}
	}}
}

// pieceTexts cuts a part into those of a stream. A call arrives whole, and so does a text with a signature.
func pieceTexts(part value, runes int) (all []json.RawMessage) {
	text := part.at("text")
	if !text.given() || part.at("thoughtSignature").given() {
		return []json.RawMessage{part.raw}
	}
	for _, piece := range splitString(text.raw, runes) {
		all = append(all, changed(part, map[string]string{"text": string(piece)}))
	}
	return all
}

// signParts adds a thought and a signature to the parts of an answer: to its first call, else to its last text. Only calls need theirs.
// https://ai.google.dev/gemini-api/docs/thought-signatures
func (x *exchange) signParts(parts []value) []value {
	var calls []value
	at := len(parts) - 1
	for i, p := range slices.Backward(parts) {
		if call := p.at("functionCall"); call.given() {
			calls, at = append(calls, object("id", callKey(call))), i
		}
	}
	if !x.seals(calls) || len(parts) == 0 {
		return parts
	}
	parts = slices.Clone(parts)
	parts[at] = parse(withMember(parts[at], "thoughtSignature", mustJSON(signatureOf(parts[at]))))
	return slices.Insert(parts, 0, object("text", "A thought.", "thought", true))
}

// callKey identifies a call by what comes back of it, however its arguments are encoded. Clients may leave out ids.
func callKey(call value) string {
	var args any
	_ = json.Unmarshal(call.at("args").raw, &args) // none: they are missing
	return digest(call.at("name").raw, mustJSON(args))
}

// signatureOf returns the signature of a part, which is bound to nothing but the part.
func signatureOf(part value) string {
	if call := part.at("functionCall"); call.given() {
		return "c2ln" + digest(json.RawMessage(callKey(call)))
	}
	return "c2ln" + digest(part.at("text").raw)
}
