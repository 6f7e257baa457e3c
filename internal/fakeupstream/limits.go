package fakeupstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// size is what a request takes of the window, in tokens.
type size struct {
	messages  int
	functions int
	output    int    // reserved by max_tokens or max_completion_tokens
	outputKey string // which of the two
}

func (s size) prompt() int { return s.messages + s.functions }

// measure counts each message by itself, so that prefixes of a prompt have counts that add up.
func measure(top object, messages []json.RawMessage, count func([]byte) int) size {
	var s size
	for _, m := range messages {
		s.messages += count(m)
	}
	if tools := top["tools"]; given(tools) {
		s.functions = count(tools)
	}
	for _, key := range []string{"max_tokens", "max_completion_tokens"} {
		if given(top[key]) {
			s.outputKey, s.output = key, asCount(top[key])
		}
	}
	return s
}

// asCount reads a whole number; what is too large for an int is as large as a count gets.
func asCount(raw json.RawMessage) int {
	const most = 1 << 40
	n, _ := strconv.ParseInt(string(raw), 10, 64) // out of range: the nearest
	return int(min(n, most))
}

// checkLimits refuses what is too long for the model. A limit of 0 is none.
func checkLimits(s size, window, maxOutput int) *APIError {
	if maxOutput > 0 && s.output > maxOutput {
		return refuse(s.outputKey, "invalid_value", "%s is too large: %d. This model supports at most %d completion "+
			"tokens, whereas you provided %d.", s.outputKey, s.output, maxOutput, s.output)
	}
	if window > 0 && s.prompt()+s.output > window {
		return overflow(s, window)
	}
	return nil
}

// overflow has two wordings: one when the prompt alone is too long, one when the reserved output makes it so.
func overflow(s size, window int) *APIError {
	var detail, reduce []string
	add := func(tokens int, where string) {
		detail, reduce = append(detail, fmt.Sprintf("%d in the %s", tokens, where)), append(reduce, where)
	}
	add(s.messages, "messages")
	if s.functions > 0 {
		add(s.functions, "functions")
	}
	total := fmt.Sprintf("your messages resulted in %d tokens", s.prompt())
	if s.prompt() <= window {
		add(s.output, "completion")
		total = fmt.Sprintf("you requested %d tokens", s.prompt()+s.output)
	}
	if len(detail) > 1 {
		total += " (" + strings.Join(detail, ", ") + ")"
	}
	return refuse("messages", "context_length_exceeded",
		"This model's maximum context length is %d tokens. However, %s. Please reduce the length of the %s.",
		window, total, list(reduce, "or"))
}

const noKey = "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer " +
	"auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the " +
	"API from your browser and are prompted for a username and password. You can obtain an API key from " +
	"https://platform.openai.com/account/api-keys."

// checkKey judges the credential; no keys means that any credential, or none, will do.
func checkKey(header http.Header, keys []string) *APIError {
	if len(keys) == 0 {
		return nil
	}
	key, bearer := strings.CutPrefix(header.Get("Authorization"), "Bearer ")
	if !bearer || key == "" {
		return &APIError{http.StatusUnauthorized, noKey, invalidRequest, "", ""}
	}
	if slices.Contains(keys, key) {
		return nil
	}
	return &APIError{http.StatusUnauthorized, fmt.Sprintf("Incorrect API key provided: %s. You can find your API key at "+
		"https://platform.openai.com/account/api-keys.", mask(key)), invalidRequest, "", "invalid_api_key"}
}

// mask hides the middle of a key.
func mask(key string) string {
	const head, tail = 3, 4
	if len(key) <= head+tail {
		return strings.Repeat("*", len(key))
	}
	return key[:head] + strings.Repeat("*", len(key)-head-tail) + key[len(key)-tail:]
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

func unknownURL(r *http.Request) *APIError {
	return &APIError{http.StatusNotFound, fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path), invalidRequest, "", ""}
}

func wrongMethod(r *http.Request) *APIError {
	return &APIError{http.StatusMethodNotAllowed, fmt.Sprintf("Not allowed to %s on %s. (HINT: Perhaps you meant to use "+
		"a different HTTP method?)", r.Method, r.URL.Path), invalidRequest, "", "method_not_supported"}
}

func unknownModel(model string) *APIError {
	return &APIError{http.StatusNotFound, fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", model),
		invalidRequest, "", "model_not_found"}
}
