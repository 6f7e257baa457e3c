package proxy

import (
	"bytes"
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
		const key, stars = "sk-sk-operator", "**************"
		piece := rapid.SampledFrom([]string{key, "sk-", "sk-sk-", "sk-operator", "wrong key: ", strings.Repeat("x", 5000)})
		text := strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")
		var body io.Reader = strings.NewReader(text)
		if rapid.Bool().Draw(t, "slow") {
			body = iotest.OneByteReader(body)
		}
		resp := &http.Response{StatusCode: 401, Status: "401 " + key, Header: http.Header{"X-Key": {"a" + key}}, Body: io.NopCloser(body)}
		mask(resp, key)
		got, err := io.ReadAll(resp.Body)
		if err != nil || string(got) != strings.ReplaceAll(text, key, stars) {
			t.Errorf("%q, %v", got, err)
		}
		if resp.Status != "401 "+stars || resp.Header.Get("X-Key") != "a"+stars {
			t.Errorf("%s, %v", resp.Status, resp.Header)
		}
	})
}

// TestMaskedBodyIsNotDelayed checks that all of a chunk is passed on before the next one arrives, but for an end with which the key may begin.
func TestMaskedBodyIsNotDelayed(t *testing.T) {
	const key = "sk-operator"
	for _, c := range []struct{ chunk, want string }{
		{"data: {}\n\n", "data: {}\n\n"}, {"ask", "a"}, {"sk-operato", ""}, {"sk-operators", "***********"}, {"sk-op-sk-op", "sk-op-"}, {"s.", "s."},
	} {
		read, write := io.Pipe()
		b := &maskedBody{ReadCloser: read, key: []byte(key)}
		go func() {
			_, _ = io.WriteString(write, c.chunk)
			_, _ = io.WriteString(write, "|")
			_ = write.Close()
		}()
		var all, first []byte
		p := make([]byte, 1<<10)
		for {
			n, err := b.Read(p)
			if all = append(all, p[:n]...); first == nil {
				first = bytes.Clone(all)
			}
			if err != nil {
				break
			}
		}
		if want := strings.ReplaceAll(c.chunk+"|", key, "***********"); string(all) != want {
			t.Errorf("%q became %q", c.chunk, all)
		}
		if c.want != "" && string(first) != c.want {
			t.Errorf("of %q, %q came first, want %q", c.chunk, first, c.want)
		}
	}
}

// BenchmarkMaskedBody reads a stream of 1 MB, as it is and with a key to look for.
func BenchmarkMaskedBody(b *testing.B) {
	event := "data: {\"choices\":[{\"delta\":{\"content\":\"some words of a stream, as they come\"}}]}\n\n"
	text := strings.Repeat(event, 1<<20/len(event))
	p := make([]byte, 4<<10)
	for name, key := range map[string]string{"plain": "", "masked": "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				resp := &http.Response{Body: io.NopCloser(strings.NewReader(text))}
				if key != "" {
					mask(resp, key)
				}
				for err := error(nil); err == nil; {
					_, err = resp.Body.Read(p)
				}
			}
		})
	}
}
