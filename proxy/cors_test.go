package proxy_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// TestExposedHeaders: scripts may read every header of ours that is documented, also in a stream that begins before upstream's answer, and in
// the answer to a header that is too long to be read.
func TestExposedHeaders(t *testing.T) {
	hold := make(chan struct{})
	r := waits(t, hold, "", fakeupstream.Answer{Content: "Ahoy."})
	live := r.live
	live.Origins = proxy.Origins{proxy.AnyOrigin}
	r.server.Swap(live)
	w := r.dial()
	body := streamOf(11)
	w.send(fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nOrigin: https://app.example\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	early := w.begin(http.MethodPost).Header
	close(hold)
	page, err := os.ReadFile("../docs/headers.md")
	must(t, err)
	_, answers, _ := strings.Cut(string(page), "## In an answer")
	names := regexp.MustCompile("(?m)^\\| `(X-Dewpoint-[A-Za-z-]+)` \\|").FindAllStringSubmatch(answers, -1)
	if len(names) < 10 {
		t.Fatalf("documented are %v", names)
	}
	for _, name := range names {
		if exposed := strings.Split(early.Get("Access-Control-Expose-Headers"), ", "); !slices.Contains(exposed, name[1]) {
			t.Errorf("%s is not in %v", name[1], exposed)
		}
	}
	if early.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a stream that begins early has %v", early)
	}
	w = r.dial()
	w.send("GET /v1/models HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n")
	if resp, _ := w.answer(http.MethodGet); resp.StatusCode != 431 || resp.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a long header: %s %v", resp.Status, resp.Header)
	}
}
