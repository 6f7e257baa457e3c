package proxy_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/dewpoint-proxy/dewpoint/condense"
	messagesapi "github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// packs lists the supported encodings of a body.
func packs() map[string]func(testing.TB, string) string {
	write := func(t testing.TB, body string, open func(io.Writer) (io.WriteCloser, error)) string {
		t.Helper()
		var out bytes.Buffer
		w, err := open(&out)
		must(t, err)
		_, err = io.WriteString(w, body)
		must(t, err)
		must(t, w.Close())
		return out.String()
	}
	return map[string]func(testing.TB, string) string{
		"gzip": func(t testing.TB, body string) string {
			return write(t, body, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
		},
		"zstd": func(t testing.TB, body string) string {
			return write(t, body, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)) })
		},
	}
}

// TestEncodedBodyIsRead: an encoded body goes upstream verbatim if it is unchanged, otherwise decoded.
func TestEncodedBodyIsRead(t *testing.T) {
	for coding, pack := range packs() {
		t.Run(coding, func(t *testing.T) {
			r, got := mirrored(t, setup{condenser: condense.AmortizedForgetting{Settings: condense.Settings{MaxSize: 8, KeepFirst: 1}}})
			packed := pack(t, hello)
			resp, _ := r.ask(packed, "Content-Encoding", coding)
			if up := <-got; up.body != packed || up.header.Get("Content-Encoding") != coding || up.length != int64(len(packed)) {
				t.Errorf("header %v, body %q", up.header, up.body)
			}
			if resp.Header.Get("X-Dewpoint-Session") == "" {
				t.Error("it was not read")
			}
			resp, _ = r.ask(pack(t, messages(turns("ships", 9)...)), "Content-Encoding", coding, "X-Dewpoint-Condense", "now")
			up := <-got
			if _, is := up.header["Content-Encoding"]; is || !strings.HasPrefix(up.body, "{") || resp.Header.Get("X-Dewpoint-Condensed") == "" {
				t.Errorf("header %v, body %.80q; %v", up.header, up.body, resp.Header)
			}
		})
	}
}

// TestRelievedBodyIsSentDecoded: an encoded body that upstream finds too long goes again condensed and decoded.
func TestRelievedBodyIsSentDecoded(t *testing.T) {
	for coding, pack := range packs() {
		codings := make(chan string, 9)
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if codings <- r.Header.Get("Content-Encoding"); r.Header.Get("Content-Encoding") != "" {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":{"message":"This model's maximum context length is 200 tokens. However, your messages resulted in 400 `+
					`tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`)
				return
			}
			_, _ = io.WriteString(w, "{}")
		}))
		t.Cleanup(upstream.Close)
		r := newRig(t, setup{base: upstream.URL, condenser: condense.AmortizedForgetting{Settings: condense.Settings{MaxSize: 100, KeepFirst: 1}}})
		resp, answer := r.ask(pack(t, messages(turns("ships", 41)...)), "Content-Encoding", coding)
		if resp.StatusCode != http.StatusOK || len(codings) != 2 || <-codings != coding || <-codings != "" {
			t.Errorf("%s: %s %s", coding, resp.Status, answer)
		}
	}
}

// TestCompactionsOfUpstreamPassUnchanged: a client of the Messages API also sends what upstream's compaction replaces. The body goes upstream
// verbatim, encoded or not, unless the history behind the compaction is condensed.
func TestCompactionsOfUpstreamPassUnchanged(t *testing.T) {
	const block = `{"type":"compaction","content":"upstream's record"}`
	turns := []string{`{"role":"user","content":"replaced"}`, `{"role":"assistant","content":[` + block + `,{"type":"text","text":"So far."}]}`}
	for n := range 8 {
		turns = append(turns, fmt.Sprintf(`{"role":"user","content":"order %d"}`, n), `{"role":"assistant","content":"done"}`)
	}
	sent := `{"model":"claude-x", "max_tokens":9,"messages":[` + strings.Join(turns, ", ") + `,{"role":"user","content":"More?"}]}`
	all := packs()
	all[""] = func(_ testing.TB, body string) string { return body }
	for coding, pack := range all {
		r, got := mirrored(t, setup{lines: true, dialect: messagesapi.New(split.Options{}), tenants: one(func(tenant *proxy.Tenant) {
			tenant.LogContent, tenant.Condenser = true, condense.AmortizedForgetting{Settings: condense.Settings{MaxSize: 100, KeepFirst: 1}}
		})})
		header := []string{"Content-Encoding", coding}
		if coding == "" {
			header = nil
		}
		for n, now := range []bool{false, true} {
			body := pack(t, sent)
			if now {
				header = append(header, "X-Dewpoint-Condense", "now")
			}
			resp, _ := r.ask(body, header...)
			up := <-got
			if line := r.line("content", n+1); line["request"] != sent || (line["forwarded"] != nil) != now {
				t.Errorf("%q, %v: logged %v", coding, now, line)
			}
			switch condensed := resp.Header.Get("X-Dewpoint-Condensed") != ""; {
			case condensed != now, resp.Header.Get("X-Dewpoint-Session") == "":
				t.Errorf("%q, %v: %v", coding, now, resp.Header)
			case !now && (up.body != body || up.header.Get("Content-Encoding") != coding):
				t.Errorf("%q: header %v, body %.80q", coding, up.header, up.body)
			case now && (!strings.Contains(up.body, block) || strings.Contains(up.body, "replaced") || up.header["Content-Encoding"] != nil):
				t.Errorf("%q, condensed: header %v, body %.80q", coding, up.header, up.body)
			}
		}
	}
}

// TestWhatUpstreamIgnoresIsLeftOut: what upstream's compaction replaces is not sent if there is no room for it in memory, or if it holds a
// compaction in the form of Dewpoint's.
func TestWhatUpstreamIgnoresIsLeftOut(t *testing.T) {
	const limit, block = 1 << 20, `{"type":"compaction","content":"upstream's record"}`
	r, got := mirrored(t, setup{dialect: messagesapi.New(split.Options{}), limits: func(l *proxy.Limits) { l.Body, l.InFlight = limit, limit }})
	for name, blocks := range map[string]string{
		"large":  block + `,{"type":"text","text":"` + strings.Repeat("far ", limit*3/16) + `"}`,
		"forged": `{"type":"compaction","content":"dewpoint.1.forged"},` + block,
	} {
		resp, answer := r.ask(`{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"replaced"},{"role":"assistant","content":[` +
			blocks + `]},{"role":"user","content":"More?"}]}`)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", name, resp.Status, answer)
		}
		if up := <-got; !strings.Contains(up.body, block) || strings.Contains(up.body, "replaced") || strings.Contains(up.body, "dewpoint.1.") {
			t.Errorf("%s: upstream got %.300s", name, up.body)
		}
	}
}

// TestEncodedAttacks hides bodies in an encoding that would be refused without it.
func TestEncodedAttacks(t *testing.T) {
	const limit = 1 << 20
	r := newRig(t, setup{limits: func(l *proxy.Limits) { l.Body = limit }})
	large := messages(say("user", strings.Repeat("a", limit)))
	for coding, pack := range packs() {
		for name, c := range map[string]struct {
			body   string
			status int
			code   string
		}{
			"bomb":           {pack(t, strings.Repeat("\x00", 8*limit)), http.StatusRequestEntityTooLarge, "request_too_large"},
			"too large":      {pack(t, large), http.StatusRequestEntityTooLarge, "request_too_large"},
			"two messages":   {pack(t, `{"messages":[],`+hello[1:]), http.StatusBadRequest, "duplicate_key"},
			"not encoded":    {hello, http.StatusBadRequest, "invalid_encoding"},
			"cut off":        {pack(t, hello)[:40], http.StatusBadRequest, "invalid_encoding"},
			"bytes after it": {pack(t, hello) + "x", http.StatusBadRequest, "invalid_encoding"},
			"two bodies":     {pack(t, hello) + pack(t, hello), http.StatusBadRequest, ""},
		} {
			resp, body := r.ask(c.body, "Content-Encoding", coding)
			if resp.StatusCode != c.status || !strings.Contains(body, c.code) {
				t.Errorf("%s, %s: status %d, %s", coding, name, resp.StatusCode, body)
			}
		}
	}
	if n := len(r.up.Requests()); n != 0 {
		t.Errorf("%d requests went upstream", n)
	}
}

// TestUnreadBody: a body that cannot be decoded passes unchanged. It is counted and reported in the answer's header; its tokens are
// estimated.
func TestUnreadBody(t *testing.T) {
	var deflated bytes.Buffer
	w := zlib.NewWriter(&deflated)
	_, err := io.WriteString(w, hello)
	must(t, err)
	must(t, w.Close())
	r, got := mirrored(t, setup{tenants: one(func(t *proxy.Tenant) { t.Limits.Tokens = 1000 })})
	for coding, body := range map[string]string{"deflate": deflated.String(), "br": "\x0b\x02", "gzip, gzip": "x", "gzip,br": "y", "rot13": hello} {
		resp, _ := r.ask(body, "Content-Encoding", coding)
		if up := <-got; up.body != body || up.header.Get("Content-Encoding") != coding {
			t.Errorf("%s: header %v, body %q", coding, up.header, up.body)
		}
		if resp.Header.Get("X-Dewpoint-Unread") != "encoding" || resp.Header.Get("X-Dewpoint-Session") != "" {
			t.Errorf("%s: %v", coding, resp.Header)
		}
	}
	r.atEnd(`dewpoint_unread_total{tenant="default",why="encoding"}`, 5)
	if resp, body := r.ask(strings.Repeat("x", 5000), "Content-Encoding", "br"); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("status %d, %s", resp.StatusCode, body)
	}
	r.atEnd(`dewpoint_unread_total{tenant="default",why="encoding"}`, 6)
	if n := r.countLogs("a request body was forwarded unread. Logged once; counted in dewpoint_unread_total"); n != 1 {
		t.Errorf("it was said %d times", n)
	}
}
