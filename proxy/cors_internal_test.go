package proxy

import "testing"

// TestOriginsAllow: an origin is allowed if it is listed as it is, and a page without one by no list of origins.
func TestOriginsAllow(t *testing.T) {
	listed := Origins{"https://a.example", "http://localhost:3000"}
	for _, c := range []struct {
		origins      Origins
		origin, want string
	}{
		{nil, "https://a.example", ""}, {Origins{AnyOrigin}, "https://a.example", "*"}, {Origins{AnyOrigin}, "", "*"}, {Origins{AnyOrigin}, "null", "*"},
		{listed, "http://localhost:3000", "http://localhost:3000"}, {listed, "http://localhost:3001", ""}, {listed, "", ""}, {listed, "null", ""},
		{listed, "https://a.example.evil", ""}, {listed, "https://a.example\r\nX: y", ""},
	} {
		if got := c.origins.allow(c.origin); got != c.want {
			t.Errorf("%v allow %q: %q, want %q", c.origins, c.origin, got, c.want)
		}
	}
}
