package recall_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/recall"
)

// TestParseSpan covers the notations that models use for an id or a range.
func TestParseSpan(t *testing.T) {
	for text, want := range map[string]recall.Span{
		"17": {17, 17, 0}, `"17"`: {17, 17, 0}, "17.0": {17, 17, 0}, "event 17": {17, 17, 0}, "#17": {17, 17, 0}, "17-20": {17, 20, 0}, "[17, 20]": {17, 20, 0},
		"events 17 to 20": {17, 20, 0}, "17..20": {17, 20, 0}, "20-17": {20, 20, 0}, "17@2": {17, 17, 2}, "17@2-20@2": {17, 20, 2}, "17-20@2": {17, 20, 2},
		recall.EventID(3, 1): {3, 3, 1}, recall.EventID(3, 0) + " 5": {3, 5, 0},
		"": {}, "0": {}, "null": {}, "none": {}, "@3": {}, "99999999999999999999": {},
	} {
		got, ok := recall.ParseSpan(text)
		if ok != (want.First > 0) || ok && got != want {
			t.Errorf("%q: got %+v, %t, want %+v", text, got, ok, want)
		}
	}
}
