package fakeupstream

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// size is the share of the context window that a request takes, in tokens, and the limits of its model.
type size struct {
	prompt    int    // messages, instructions and tools
	output    int    // reserved by max_tokens or another key
	outputKey string // the key that reserved it
	window    int    // maximum of prompt and output together
	maxOutput int
}

// CountPrompt returns the tokens of a request with this body, in the count of PromptTokens.
func (s *Server) CountPrompt(body []byte) int {
	top := parse(body)
	return s.count(top, slices.Concat(top.at("messages").elements, top.at("input").elements, top.at("contents").elements))
}

// count counts each message separately, so that the counts of prefixes add up.
func (s *Server) count(top value, history []value) (n int) {
	for _, part := range append([]value{top.at("system"), top.at("instructions"), top.at("systemInstruction"), top.at("tools")}, history...) {
		if part.given() {
			n += s.options.CountTokens(part.raw)
		}
	}
	return n
}

func (x *exchange) measure() size {
	o := &x.server.options
	window := cmp.Or(o.Windows[x.req.Model], o.ContextWindow, math.MaxInt)
	s := size{prompt: x.server.count(x.top, x.history), window: window, maxOutput: cmp.Or(o.MaxOutput, math.MaxInt)}
	for _, key := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		if n := x.top.at(key); n.given() {
			s.outputKey, s.output = key, asCount(n)
		}
	}
	return s
}

// admit returns a check that refuses a request over its limits, and otherwise records its size.
func admit(limits func(s size) *APIError) func(x *exchange, v *verdict) {
	return func(x *exchange, v *verdict) {
		takes, record := x.measure(), x.server.record
		if v.fail(limits(takes)); v.err != nil {
			return
		}
		record.change(func() {
			x.req.PromptTokens = takes.prompt
			if x.req.Summary {
				record.summaries++
			}
		})
	}
}

// asCount decodes an integer. Huge numbers are cut to 1<<40.
func asCount(v value) int {
	const most = 1 << 40
	n, _ := strconv.ParseInt(string(v.raw), 10, 64) // ParseInt returns the nearest number if out of range
	return int(min(n, most))
}

const noKey = "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer " +
	"auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the " +
	"API from your browser and are prompted for a username and password. You can obtain an API key from " +
	"https://platform.openai.com/account/api-keys."

// checkKey refuses a wrong credential. Without keys, any credential or none is accepted.
func checkKey(header http.Header, keys []string) *APIError {
	key, bearer := strings.CutPrefix(header.Get("Authorization"), "Bearer ")
	switch {
	case len(keys) == 0 || slices.Contains(keys, key) && bearer:
		return nil
	case !bearer || key == "":
		return &APIError{http.StatusUnauthorized, noKey, invalidRequest, "", ""}
	}
	return &APIError{http.StatusUnauthorized, fmt.Sprintf("Incorrect API key provided: ***%s. You can find your API key at "+
		"https://platform.openai.com/account/api-keys.", key[max(0, len(key)-4):]), invalidRequest, "", "invalid_api_key"}
}

// checkAnthropicKey accepts a key in x-api-key or as a bearer token.
func checkAnthropicKey(header http.Header, keys []string) *APIError {
	if slices.Contains(keys, header.Get("X-Api-Key")) || checkKey(header, keys) == nil {
		return nil
	}
	return &APIError{http.StatusUnauthorized, "invalid x-api-key", "authentication_error", "", ""}
}

func checkContentType(header http.Header) *APIError {
	given := header.Get("Content-Type")
	mediaType, _, _ := strings.Cut(given, ";")
	if strings.EqualFold(strings.TrimSpace(mediaType), "application/json") {
		return nil
	}
	return refuse("", "unsupported_content_type", "Unsupported content type: '%s'. This API method only accepts "+
		"'application/json' requests, but you specified the header 'Content-Type: %s'. Please try again with a supported "+
		"content type.", given, given)
}

func unknownModel(model string) *APIError {
	return &APIError{http.StatusNotFound, fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", model),
		invalidRequest, "", "model_not_found"}
}
