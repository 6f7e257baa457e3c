package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// TestKeyIsRedacted has a key in an error, however the error comes: it never shows, and everything else does.
func TestKeyIsRedacted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const key, mask = "sk-sk-operator", "**************"
		piece := rapid.SampledFrom([]string{key, "sk-", "sk-sk-", "sk-operator", "wrong key: ", strings.Repeat("x", 5000)})
		text := strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")
		var body io.Reader = strings.NewReader(text)
		if rapid.Bool().Draw(t, "slow") {
			body = iotest.OneByteReader(body)
		}
		resp := &http.Response{StatusCode: 401, Status: "401 " + key, Header: http.Header{"X-Key": {"a" + key}}, Body: io.NopCloser(body)}
		redact(resp, key)
		got, err := io.ReadAll(resp.Body)
		if err != nil || string(got) != strings.ReplaceAll(text, key, mask) {
			t.Errorf("%q, %v", got, err)
		}
		if resp.Status != "401 "+mask || resp.Header.Get("X-Key") != "a"+mask {
			t.Errorf("%s, %v", resp.Status, resp.Header)
		}
	})
}
