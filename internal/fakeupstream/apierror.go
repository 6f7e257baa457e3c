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

func wrongValue(param, got string, supported ...string) *APIError {
	return refuse(param, "invalid_value", "Invalid value: '%s'. Supported values are: %s.", got, list(supported))
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

// list quotes the values and joins them as an English enumeration.
func list(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = "'" + v + "'"
	}
	switch last := len(quoted) - 1; last {
	case 0:
		return quoted[0]
	case 1:
		return quoted[0] + " and " + quoted[1]
	default:
		return strings.Join(quoted[:last], ", ") + ", and " + quoted[last]
	}
}
