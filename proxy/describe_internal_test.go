package proxy

import "testing"

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{
		0: "0", 999: "999", 1000: "1.0k", 1049: "1.0k", 1471: "1.5k", 9949: "9.9k", 9950: "10k", 10499: "10k", 10500: "11k", 30547: "31k",
	} {
		if got := thousands(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
