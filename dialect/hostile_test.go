package dialect_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// hostile are the dialects, with the list of their bodies.
var hostile = map[string]dialect.Dialect{
	"messages": messages.New(split.Options{}), "input": responses.New(split.Options{}), "chat": chat.New(chat.Options{}),
}

// bodyOf is a body of n elements, all the same.
func bodyOf(name, element string, n int) []byte {
	if name == "chat" {
		name = "messages"
	}
	return []byte(`{"` + name + `":[` + strings.Repeat(element+",", n-1) + element + `]}`)
}

// TestNestedContents: how deep contents are nested does not tell in the time that a body of a size takes.
func TestNestedContents(t *testing.T) {
	for name, d := range hostile {
		for _, nest := range [][2]string{{`[`, `]`}, {`[{"type":"tool_result","content":`, `}]`}} {
			took := func(depth int) time.Duration {
				element := `{"role":"user","content":` + strings.Repeat(nest[0], depth) + `""` + strings.Repeat(nest[1], depth) + `}`
				body, least := bodyOf(name, element, 1<<19/len(element)), time.Hour
				for range 3 {
					begun := time.Now()
					_, _ = d.Split(body)
					least = min(least, time.Since(begun))
				}
				return least
			}
			if flat, deep := took(4), took(200); deep > 10*flat {
				t.Errorf("%s of %s: 200 levels take %v, 4 take %v", name, nest[0], deep, flat)
			}
		}
	}
}

// TestManySmallParts: what a body allocates is in proportion to its size, of however many parts its messages are.
func TestManySmallParts(t *testing.T) {
	part := strings.Repeat(`{},`, 4000) + `{}`
	for name, d := range hostile {
		for _, element := range []string{`{"role":"user","content":[` + part + `]}`, `{"role":"assistant","tool_calls":[` + part + `]}`} {
			body := bodyOf(name, element, 100)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := d.Split(body); err != nil {
				t.Fatal(name, err)
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 40*uint64(len(body)) {
				t.Errorf("%s allocates %d bytes for %d", name, took, len(body))
			}
		}
	}
}
