package fakeupstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
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
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	// A struct of strings always encodes.
	_ = enc.Encode(map[string]errorMembers{"error": {e.Message, e.Type, orNull(e.Param), orNull(e.Code)}})
	return out.Bytes()
}

// errorMembers fixes the order of the members.
type errorMembers struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
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

func missingParameter(param string) *APIError {
	return refuse(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

func unknownParameter(param string) *APIError {
	return refuse(param, "unknown_parameter", "Unknown parameter: '%s'.", param)
}

func wrongType(param, want string, got json.RawMessage) *APIError {
	return refuse(param, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", param, want, describe(got))
}

// require refuses a value that is missing, or of another kind.
func require(param string, raw json.RawMessage, want kind) *APIError {
	if kindOf(raw) == kindAbsent {
		return missingParameter(param)
	}
	return expect(param, raw, want)
}

// expect refuses a value of another kind.
func expect(param string, raw json.RawMessage, want kind) *APIError {
	if kindOf(raw) == want {
		return nil
	}
	words := map[kind]string{kindBool: "a boolean", kindString: "a string", kindObject: "an object", kindArray: "an array of objects"}
	return wrongType(param, words[want], raw)
}

func wrongValue(param, got string, supported ...string) *APIError {
	return refuse(param, "invalid_value", "Invalid value: '%s'. Supported values are: %s.", got, list(quoted(supported), "and"))
}

func emptyArray(param string) *APIError {
	return refuse(param, "empty_array",
		"Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param)
}

func emptyString(param string) *APIError {
	return refuse(param, "empty_string",
		"Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.", param)
}

func longString(param string, limit, got int) *APIError {
	return refuse(param, "string_above_max_length",
		"Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.",
		param, limit, got)
}

func badPattern(param, pattern string) *APIError {
	return refuse(param, "invalid_value",
		"Invalid '%s': string does not match pattern. Expected a string that matches the pattern '%s'.", param, pattern)
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
