package fakeupstream_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// history is a conversation of about so many bytes, in units of a call and its result.
func history(size int) string {
	unit := callsA + `,{"role":"tool","tool_call_id":"a","content":"` + strings.Repeat("some output ", 170) + `"}`
	return conversation(user + strings.Repeat(","+unit, size/len(unit)))
}

func BenchmarkAnswer(b *testing.B) {
	for _, size := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s, body := fakeupstream.New(fakeupstream.Options{Keep: 1}), history(size)
			defer s.Close()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				if w.Code != 200 {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
