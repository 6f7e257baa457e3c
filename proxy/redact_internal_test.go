package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

// TestKeyIsRedacted has a key in an error, wherever it may be: the key never shows, and everything else does.
func TestKeyIsRedacted(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
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

// TestLongErrorIsCutOff has an endless error: the part that is searched is passed on, and then the body breaks.
func TestLongErrorIsCutOff(t *testing.T) {
	const key = "sk-operator"
	endless := io.MultiReader(strings.NewReader(key), zeros{})
	resp := &http.Response{StatusCode: 500, Body: io.NopCloser(endless)}
	redact(resp, key)
	got, err := io.ReadAll(resp.Body)
	if !errors.Is(err, errBroken) || len(got) != maxReadAnswer || !strings.HasPrefix(string(got), strings.Repeat("*", len(key))+"\x00") {
		t.Errorf("%d bytes, %.20q, %v", len(got), got, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
