package fakeupstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// invalidRequest is the error type of everything a client did wrong.
const invalidRequest = "invalid_request_error"

// APIError is an error as OpenAI sends it: a status and the members of the body's "error" object.
type APIError struct {
	Status  int
	Message string
	Type    string
	Param   string // "" is sent as null
	Code    string // "" is sent as null
}

// Error makes APIError an error.
func (e *APIError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, e.Type, e.Message)
}

// Body returns the response body, {"error":{...}}, laid out as OpenAI lays it out.
func (e *APIError) Body() []byte {
	var out bytes.Buffer
	_ = json.Indent(&out, e.json(), "", "  ") // what was encoded can be indented
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

// refuse is a 400 for the parameter.
func refuse(param, code, format string, args ...any) *APIError {
	return &APIError{http.StatusBadRequest, fmt.Sprintf(format, args...), invalidRequest, param, code}
}

// verdict is what is wrong with a request. The first complaint counts: what is said after it is of no account.
type verdict struct{ err *APIError }

func (v *verdict) refuse(param, code, format string, args ...any) {
	if v.err == nil {
		v.err = refuse(param, code, format, args...)
	}
}

func (v *verdict) missing(param string) {
	v.refuse(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

func (v *verdict) unknown(param string) {
	v.refuse(param, "unknown_parameter", "Unknown parameter: '%s'.", param)
}

func (v *verdict) wrongType(param, want string, got json.RawMessage) {
	v.refuse(param, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", param, want, describe(got))
}

// has refuses a value that is missing, or of another kind.
func (v *verdict) has(param string, raw json.RawMessage, want kind) {
	if kindOf(raw) == kindAbsent {
		v.missing(param)
	}
	v.is(param, raw, want)
}

// is refuses a value of another kind.
func (v *verdict) is(param string, raw json.RawMessage, want kind) {
	if kindOf(raw) != want {
		words := map[kind]string{kindBool: "a boolean", kindString: "a string", kindObject: "an object", kindArray: "an array of objects"}
		v.wrongType(param, words[want], raw)
	}
}

// mayBe refuses a value of another kind where one is given.
func (v *verdict) mayBe(param string, raw json.RawMessage, want kind) {
	if given(raw) {
		v.is(param, raw, want)
	}
}

// among refuses a word that is none of those supported.
func (v *verdict) among(param, got string, supported ...string) {
	if !slices.Contains(supported, got) {
		v.refuse(param, "invalid_value", "Invalid value: '%s'. Supported values are: %s.", got, list(quoted(supported), "and"))
	}
}

// filled refuses an empty array.
func (v *verdict) filled(param string, all []json.RawMessage) {
	if len(all) == 0 {
		v.refuse(param, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param)
	}
}

// says refuses what is no text, or an empty one.
func (v *verdict) says(param string, raw json.RawMessage) {
	v.has(param, raw, kindString)
	if asString(raw) == "" {
		v.refuse(param, "empty_string", "Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.", param)
	}
}

// short refuses a text that is longer than the limit.
func (v *verdict) short(param string, limit, length int) {
	if length > limit {
		v.refuse(param, "string_above_max_length",
			"Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", param, limit, length)
	}
}

// quoted puts each value in single quotes.
func quoted(values []string) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = "'" + v + "'"
	}
	return all
}

// list joins values as an English enumeration, with a word before the last.
func list(values []string, word string) string {
	switch last := len(values) - 1; last {
	case 0:
		return values[0]
	case 1:
		return values[0] + " " + word + " " + values[1]
	default:
		return strings.Join(values[:last], ", ") + ", " + word + " " + values[last]
	}
}
