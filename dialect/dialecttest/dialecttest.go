// Package dialecttest holds what tests of several dialects do in the same way.
package dialecttest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TB is the part of a test that this package uses. Tests of properties have it as well.
type TB interface {
	Fatalf(format string, args ...any)
}

// Split splits a body that must be valid.
func Split(t TB, d dialect.Dialect, body string) *dialect.Request {
	r, err := d.Split("", []byte(body))
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return r
}

// InShort formats the kind of each message, its calls, and the call that it is a result of.
func InShort(all []session.Message) string {
	words := make([]string, len(all))
	for i := range all {
		m := &all[i]
		words[i] = m.Kind.String() + strings.Join(m.Calls, "+") + m.Result
		if m.Sealed {
			words[i] += "!"
		}
	}
	return strings.Join(words, " ")
}

// JoinIsEquivalent checks that a body joined from its own messages is equivalent to it, and that a body composed of them splits into the same
// messages.
func JoinIsEquivalent(t TB, d dialect.Dialect, body []byte) {
	r := Split(t, d, string(body))
	raws := make([][]byte, len(r.Messages))
	for i := range r.Messages {
		raws[i] = r.Messages[i].Raw
	}
	var got, want any
	joined := slices.Concat(d.Join(r, raws)...)
	if json.Unmarshal(body, &want) != nil || json.Unmarshal(joined, &got) != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %s\nwant %s", joined, body)
	}
	again := Split(t, d, string(d.Compose(raws)))
	if InShort(again.Messages) != InShort(r.Messages) || again.Messages[len(raws)-1].Digest != r.Messages[len(raws)-1].Digest {
		t.Fatalf("got %s, want %s", InShort(again.Messages), InShort(r.Messages))
	}
}
