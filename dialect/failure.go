package dialect

import "github.com/dewpoint-proxy/dewpoint/internal/rawjson"

// Failure is an error of the proxy itself, sent to a client. Code is stable; Message says what to do.
type Failure struct {
	Status  int
	Type    string // as OpenAI names it
	Code    string
	Param   string // the key at fault, or empty
	Message string
}

// OpenAI encodes the failure in the format of OpenAI's errors.
func (f Failure) OpenAI() []byte {
	out := rawjson.AppendQuote([]byte(`{"error":{"message":`), f.Message)
	out = rawjson.AppendQuote(append(out, `,"type":`...), f.Type)
	out = append(out, `,"param":`...)
	if f.Param == "" {
		out = append(out, "null"...)
	} else {
		out = rawjson.AppendQuote(out, f.Param)
	}
	out = rawjson.AppendQuote(append(out, `,"code":`...), f.Code)
	return append(out, "}}"...)
}
