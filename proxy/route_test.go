package proxy_test

import (
	"net/http"
	"strconv"
	"testing"
)

// TestSpellings spells the path of chat completions in every way that some server accepts: each is read, and goes upstream in its plain
// spelling.
func TestSpellings(t *testing.T) {
	r, got := mirrored(t, setup{})
	for _, path := range []string{
		"/v1/chat/completions", "/chat/completions", "/v1/v1/chat/completions", "/v1//v1/chat/completions", "/v1/chat/completions/",
		"/v1/chat//completions", "//v1/chat/completions", "/v1//chat/completions", "///chat///completions//",
		"/v1/chat/%63ompletions", "/v1/chat/%2563ompletions", "/%76%31/chat/completions", "/v1/chat%2fcompletions", "/v1%2Fchat/completions",
		"/v1/chat%5ccompletions", "/v1/chat\\completions", "/V1/Chat/Completions", "/v1;a=b/chat;c/completions;d=e", "/v1/chat/completions%20",
		"http://proxy.example/v1/chat//completions",
	} {
		w := r.dial()
		w.t = t
		w.send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + strconv.Itoa(len(hello)) + "\r\n\r\n" + hello)
		resp, body := w.answer(http.MethodPost)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Dewpoint-Session") == "" {
			t.Errorf("%s was not read: status %d, %s", path, resp.StatusCode, body)
		}
		if resp.StatusCode == http.StatusOK {
			if up := <-got; up.target != "/base/v9/chat/completions" || up.body != hello {
				t.Errorf("%s went to %s", path, up.target)
			}
		}
		w.Close()
	}
}

// TestIdentityIsNoEncoding sends bodies whose Content-Encoding names no encoding.
func TestIdentityIsNoEncoding(t *testing.T) {
	r, got := mirrored(t, setup{})
	for _, value := range []string{"identity", " Identity ", "identity, identity", ","} {
		resp, _ := r.ask(hello, "Content-Encoding", value)
		if resp.Header.Get("X-Dewpoint-Session") == "" {
			t.Errorf("%q: it was not read", value)
		}
		<-got
	}
}
