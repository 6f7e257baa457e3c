package fakeupstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// invalidRequest is the type of every error that the client caused.
const invalidRequest = "invalid_request_error"

// APIError is an OpenAI error: the HTTP status and the members of the body's "error" object.
type APIError struct {
	Status  int
	Message string
	Type    string
	Param   string // "" is sent as null
	Code    string // "" is sent as null
}

// Error implements error.
func (e *APIError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, e.Type, e.Message)
}

// Body returns the response body, {"error":{...}}, indented as OpenAI indents it.
func (e *APIError) Body() []byte {
	var out bytes.Buffer
	_ = json.Indent(&out, e.json(), "", "  ") // build writes valid JSON
	out.WriteByte('\n')
	return out.Bytes()
}

func (e *APIError) json() json.RawMessage {
	return build("error", build("message", e.Message, "type", e.Type, "param", orNull(e.Param), "code", orNull(e.Code)))
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// refuse returns a 400 for a parameter.
func refuse(param, code, format string, args ...any) *APIError {
	return &APIError{http.StatusBadRequest, fmt.Sprintf(format, args...), invalidRequest, param, code}
}

// verdict collects what is wrong with a request. It keeps the first complaint and ignores the rest.
type verdict struct{ err *APIError }

func (v *verdict) refuse(param, code, format string, args ...any) {
	v.fail(refuse(param, code, format, args...))
}

// refuseIf refuses a parameter if it is wrong.
func (v *verdict) refuseIf(wrong bool, param, code, format string, args ...any) {
	if wrong {
		v.refuse(param, code, format, args...)
	}
}

func (v *verdict) fail(err *APIError) {
	if v.err == nil {
		v.err = err
	}
}

func (v *verdict) missingIf(absent bool, param string) {
	v.refuseIf(absent, param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

func (v *verdict) unknown(param string) {
	v.refuse(param, "unknown_parameter", "Unknown parameter: '%s'.", param)
}

func (v *verdict) wrongType(param, want string, got value) {
	v.refuse(param, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", param, want, describe(got))
}

// require refuses a value that is missing or not of the wanted kind.
func (v *verdict) require(param string, got value, want kind) {
	v.missingIf(got.kind == kindAbsent, param)
	v.is(param, got, want)
}

// is refuses a value of another kind than want.
func (v *verdict) is(param string, got value, want kind) {
	if got.kind != want {
		words := map[kind]string{kindBool: "a boolean", kindString: "a string", kindObject: "an object", kindArray: "an array of objects"}
		v.wrongType(param, words[want], got)
	}
}

// optional refuses a value that is neither absent, nor null, nor of the kind want.
func (v *verdict) optional(param string, got value, want kind) {
	if got.given() {
		v.is(param, got, want)
	}
}

// oneOf returns a required string, and refuses one that is not supported.
func (v *verdict) oneOf(param string, got value, supported ...string) string {
	word := got.text
	v.require(param, got, kindString)
	v.refuseIf(!slices.Contains(supported, word), param, "invalid_value",
		"Invalid value: '%s'. Supported values are: %s.", word, enumerate(supported))
	return word
}

// objects returns the elements of an array that must not be empty and must hold only objects.
func (v *verdict) objects(param string, got value) []value {
	v.require(param, got, kindArray)
	all := got.elements
	v.refuseIf(len(all) == 0, param, "empty_array",
		"Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param)
	for i, element := range all {
		v.is(fmt.Sprintf("%s[%d]", param, i), element, kindObject)
	}
	return all
}

// nonEmpty refuses a value that is not a string, and an empty string.
func (v *verdict) nonEmpty(param string, got value) {
	v.require(param, got, kindString)
	v.refuseIf(got.text == "", param, "empty_string",
		"Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.", param)
}

// maxLength refuses a string longer than the limit.
func (v *verdict) maxLength(param string, limit, length int) {
	v.refuseIf(length > limit, param, "string_above_max_length",
		"Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", param, limit, length)
}

func (v *verdict) matches(param, text string, pattern *regexp.Regexp) {
	v.refuseIf(!pattern.MatchString(text), param, "invalid_value",
		"Invalid '%s': string does not match pattern. Expected a string that matches the pattern '%s'.", param, pattern)
}

// enumerate joins values into an English enumeration, each in single quotes.
func enumerate(values []string) string {
	last := len(values) - 1
	if last < 2 {
		return "'" + strings.Join(values, "' and '") + "'"
	}
	return "'" + strings.Join(values[:last], "', '") + "', and '" + values[last] + "'"
}
