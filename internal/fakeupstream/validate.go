package fakeupstream

import (
	"cmp"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

const unparsable = "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your " +
	"HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have " +
	"trouble figuring out how to fix this, please contact us through our help center at help.openai.com.)"

// Validate judges the body of a Chat Completions request by what can be seen from it alone, and returns the error that
// OpenAI answers, or nil. First the shape of every field, then the order of the messages: each assistant message with
// tool calls and its results are one unit, so an id may come again in a later unit.
//
// What OpenAI refuses but compatible servers allow passes: see ValidateStrict. Validate is pure and safe for concurrent
// use.
func Validate(body []byte) *APIError {
	top, err := parseBody(body)
	if err != nil {
		return err
	}
	if err := checkModel(top); err != nil {
		return err
	}
	messages, err := parseMessages(top)
	if err != nil {
		return err
	}
	return cmp.Or(checkTools(top), checkToolChoice(top), checkResponseFormat(top), checkNumbers(top), checkStream(top), checkMessageOrder(messages))
}

// ValidateStrict is Validate that also refuses unknown fields, at the top and in the messages, and tool call ids of more
// than 40 characters, as OpenAI itself does.
func ValidateStrict(body []byte) *APIError {
	if err := Validate(body); err != nil {
		return err
	}
	top := asObject(body)
	return cmp.Or(checkKnownArguments(top), checkKnownMessageFields(top), checkIDLengths(top))
}

func parseBody(body []byte) (object, *APIError) {
	var top object
	if err := json.Unmarshal(body, &top); err == nil && top != nil && utf8.Valid(body) {
		return top, nil
	}
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, refuse("", "", unparsable)
	}
	return nil, refuse("", "invalid_type", "Invalid type: expected an object, but got %s instead.", describe(body))
}

func checkModel(top object) *APIError {
	if model := top["model"]; given(model) && string(model) != `""` {
		return expect("model", model, kindString)
	}
	return refuse("", "", "you must provide a model parameter")
}

func checkStream(top object) *APIError {
	if stream := top["stream"]; given(stream) && kindOf(stream) != kindBool {
		return expect("stream", stream, kindBool)
	}
	options := top["stream_options"]
	if !given(options) {
		return nil
	}
	if err := expect("stream_options", options, kindObject); err != nil {
		return err
	}
	if !isTrue(top["stream"]) {
		return refuse("stream_options", "",
			"The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	return nil
}

func isTrue(raw json.RawMessage) bool {
	var b bool
	return json.Unmarshal(raw, &b) == nil && b
}

// bounds are the limits of one numeric parameter.
type bounds struct {
	param string
	low   float64
	high  float64
	open  bool // no upper limit
	whole bool
}

func checkNumbers(top object) *APIError {
	for _, b := range []bounds{
		{param: "temperature", high: 2},
		{param: "top_p", high: 1},
		{param: "presence_penalty", low: -2, high: 2},
		{param: "frequency_penalty", low: -2, high: 2},
		{param: "n", low: 1, high: 128, whole: true},
		{param: "max_tokens", low: 1, open: true, whole: true},
		{param: "max_completion_tokens", low: 1, open: true, whole: true},
	} {
		if err := b.check(top[b.param]); err != nil {
			return err
		}
	}
	if given(top["max_tokens"]) && given(top["max_completion_tokens"]) {
		return refuse("max_tokens", "invalid_parameter_combination",
			"Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	return nil
}

func (b bounds) check(raw json.RawMessage) *APIError {
	if !given(raw) {
		return nil
	}
	if b.whole && !isInteger(raw) {
		return wrongType(b.param, "an integer", raw)
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return wrongType(b.param, "a decimal", raw)
	}
	if n < b.low {
		return b.outside("below minimum", b.low, raw)
	}
	if !b.open && n > b.high {
		return b.outside("above maximum", b.high, raw)
	}
	return nil
}

func (b bounds) outside(side string, limit float64, got json.RawMessage) *APIError {
	number, code, relation := "decimal", "_above_max_value", "<="
	if b.whole {
		number = "integer"
	}
	if side == "below minimum" {
		code, relation = "_below_min_value", ">="
	}
	return refuse(b.param, number+code, "Invalid '%s': %s %s value. Expected a value %s %v, but got %s instead.",
		b.param, number, side, relation, limit, got)
}
