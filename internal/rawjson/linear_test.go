package rawjson_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
)

// TestReadersAreLinear reads hostile texts as JSON, as the inside of a JSON string, and behind a member of an object.
func TestReadersAreLinear(t *testing.T) {
	quoted := func(text string) []byte { return rawjson.AppendQuote(nil, text) }
	for name, read := range map[string]func(string){
		"valid":     func(text string) { _ = rawjson.Valid([]byte(text), 100) },
		"quoted":    func(text string) { _ = rawjson.Valid(quoted(text), 100) },
		"canonical": func(text string) { rawjson.AppendCanonical(nil, quoted(text)) },
		"unquote":   func(text string) { rawjson.AppendUnquote(nil, quoted(text)) },
		"value":     func(text string) { rawjson.ValueOf([]byte(text)) },
		"members": func(text string) {
			for range rawjson.Members([]byte(`{"a":` + string(quoted(text)) + `,` + text)) {
				continue
			}
		},
	} {
		t.Run(name, func(t *testing.T) { lineartest.Check(t, read) })
	}
}
