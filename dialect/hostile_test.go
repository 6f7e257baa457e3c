package dialect_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/gemini"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
)

// hostile maps the member of a body that holds the history to its dialect.
var hostile = map[string]dialect.Dialect{
	"messages": messages.New(split.Options{}), "input": responses.New(split.Options{}), "chat": chat.New(chat.Options{}),
	"contents": gemini.New(split.Options{}),
}

// contentOf and modelOf name the content of a message, and the role of the model.
var (
	contentOf = map[string]string{"messages": "content", "input": "content", "chat": "content", "contents": "parts"}
	modelOf   = map[string]string{"messages": "assistant", "input": "assistant", "chat": "assistant", "contents": "model"}
)

// bodyOf returns a body of n equal elements.
func bodyOf(name, element string, n int) []byte {
	if name == "chat" {
		name = "messages"
	}
	return []byte(`{"` + name + `":[` + strings.Repeat(element+",", n-1) + element + `]}`)
}

// TestNestedContents checks that the time for a body of a given size does not depend on the nesting of its content.
func TestNestedContents(t *testing.T) {
	for name, d := range hostile {
		for _, nest := range [][2]string{{`[`, `]`}, {`[{"type":"tool_result","content":`, `}]`}, {`[{"functionResponse":{"response":`, `}}]`}} {
			body := func(depth int) string {
				element := `{"role":"user","` + contentOf[name] + `":` + strings.Repeat(nest[0], depth) + `""` + strings.Repeat(nest[1], depth) + `}`
				return string(bodyOf(name, element, 1<<19/len(element)))
			}
			lineartest.Compare(t, func(text string) { _, _ = d.Split("", []byte(text)) }, body(4), body(200), 10)
		}
	}
}

// TestManySmallParts checks that a body allocates in proportion to its size, however many parts its messages have.
func TestManySmallParts(t *testing.T) {
	part := strings.Repeat(`{},`, 4000) + `{}`
	for name, d := range hostile {
		for _, element := range []string{`{"role":"user","` + contentOf[name] + `":[` + part + `]}`, `{"role":"` + modelOf[name] + `","tool_calls":[` + part + `]}`} {
			body := bodyOf(name, element, 100)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := d.Split("", body); err != nil {
				t.Fatal(name, err)
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 40*uint64(len(body)) {
				t.Errorf("%s allocates %d bytes for %d", name, took, len(body))
			}
		}
	}
}
