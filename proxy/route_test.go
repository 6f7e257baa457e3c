package proxy_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// TestEverySpellingOfThePathIsRead spells the path of chat completions in every way that some server accepts: each is read, and goes upstream in its plain
// spelling.
func TestEverySpellingOfThePathIsRead(t *testing.T) {
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

// TestGeminiPaths: a path of Gemini's API brings its own version, whatever is in front of it, and that it is not read is said once.
func TestGeminiPaths(t *testing.T) {
	r, got := mirrored(t, setup{})
	for _, path := range []string{
		"/v1/v1beta/models/gemini-2.5-pro:generateContent", "/v1beta/models/gemini-2.5-pro:generateContent", "/v1/v1alpha/models/x:countTokens",
	} {
		w := r.dial()
		w.t = t
		w.send("POST " + path + "?alt=sse HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		if resp, _ := w.answer(http.MethodPost); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
		if up := <-got; up.target != "/base/"+strings.TrimLeft(strings.TrimPrefix(path, "/v1/"), "/")+"?alt=sse" {
			t.Errorf("%s went to %s", path, up.target)
		}
		w.Close()
	}
	if n := r.logs.FilterMessageSnippet("Gemini's own API passes unread").Len(); n != 1 {
		t.Errorf("said %d times", n)
	}
}
