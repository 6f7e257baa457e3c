package assemble

import (
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// TestSumUsage: upstream chooses the numbers in a usage report, so a long number must not make every later event slow.
func TestSumUsage(t *testing.T) {
	nines := strings.Repeat("9", 5000)
	for _, c := range [][3]string{
		{`{"a":1,"b":{"c":2}}`, `{"a":3,"b":{"c":4},"d":5}`, `{"a":4,"b":{"c":6},"d":5}`},
		{`{"a":999999999999999999}`, `{"a":1}`, `{"a":1000000000000000000}`},
		{`{"a":9223372036854775807}`, `{"a":1}`, `{"a":9.223372036854776e+18}`},
		{`{"a":9999999999999999999}`, `{"a":1}`, `{"a":1e+19}`},
		{`{"a":1.5}`, `{"a":1}`, `{"a":2.5}`},
		{`{"a":1` + nines[:300] + `}`, `{"a":1}`, `{"a":2e+300}`},
		{`{"a":` + nines + `}`, `{"a":1}`, `{"a":1}`},
		{`{"a":-` + nines + `}`, `{"a":1e400}`, `{"a":1e400}`},
	} {
		if got := string(sumUsage([]byte(c[0]), []byte(c[1]))); got != c[2] {
			t.Errorf("%.60s and %s: %.60s, want %s", c[0], c[1], got, c[2])
		}
	}
	var s State
	s.SetUsage(rawjson.ValueOf([]byte(`{"a":[` + strings.Repeat("0,", MaxUsage/2) + `0]}`)))
	if s.Usage != nil {
		t.Errorf("a usage report of %d bytes was taken", len(s.Usage))
	}
}
