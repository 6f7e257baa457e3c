package overflow_test

import (
	"encoding/json"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// TestRecogniseIsLinear checks that an upstream cannot make Recognise slow.
func TestRecogniseIsLinear(t *testing.T) {
	quick.Alone(t)
	for name, read := range map[string]func(string){
		"text": func(text string) { overflow.Recognise(400, "text/plain", []byte(text)) },
		"json": func(text string) { overflow.Recognise(400, "application/json", []byte(text)) },
		"message": func(text string) {
			body, err := json.Marshal(map[string]any{"error": map[string]string{"message": text}})
			if err != nil {
				t.Error(err)
			}
			overflow.Recognise(400, "application/json", body)
		},
		"events": func(text string) { overflow.Recognise(200, "text/event-stream", []byte("data: "+text)) },
		"roles":  func(text string) { overflow.AlternatesRoles(400, "text/plain", []byte(text)) },
	} {
		t.Run(name, func(t *testing.T) { lineartest.Check(t, read) })
	}
}
