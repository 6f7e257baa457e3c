package dialect

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

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
	param := []byte("null")
	if f.Param != "" {
		param = rawjson.AppendQuote(nil, f.Param)
	}
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%s,"param":%s,"code":%s}}`,
		rawjson.AppendQuote(nil, f.Message), rawjson.AppendQuote(nil, f.Type), param, rawjson.AppendQuote(nil, f.Code))
}
