package proxy

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterIsRead(t *testing.T) {
	now := time.Date(2026, 11, 30, 14, 2, 11, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "12": 12 * time.Second, "0.5": 500 * time.Millisecond, "-3": 0, "soon": 0, "NaN": 0, "1e99": 1e6 * time.Second,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
