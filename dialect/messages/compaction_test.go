package messages_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestUnseal checks that a history starts with its newest compaction.
func TestUnseal(t *testing.T) {
	refused := errors.New("it does not open")
	open := func(sealed string) (string, error) {
		if sealed == "mark.forged" {
			return "", refused
		}
		return strings.ToUpper(sealed), nil
	}
	user := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	said := func(blocks string) string { return `{"role":"assistant","content":[` + blocks + `]}` }
	const ours, theirs, failed, text = `{"type":"compaction","content":"mark.a"}`, `{"type":"compaction","content":"b","encrypted_content":"c"}`,
		`{"type":"compaction","content":null}`, `{"type":"text","text":"x"}`
	f := func(elements, want string) {
		t.Helper()
		got, err := messages.New(split.Options{}).Unseal([]byte(`{"model":"m","messages":[`+elements+`]}`), "mark.", open)
		if err != nil || string(got) != `{"model":"m","messages":[`+want+`]}` {
			t.Errorf("%s\ngot  %s (%v)\nwant %s", elements, got, err, want)
		}
	}
	f(user("a"), user("a"))
	f(user("a")+","+said(ours)+","+user("b"), user("MARK.A")+","+user("b"))
	f(user("a")+","+said(text+","+ours+","+text)+","+user("b"), user("MARK.A")+","+said(text)+","+user("b"))
	f(user("a")+","+said(theirs+","+text)+","+user("b"), said(theirs)+","+said(text)+","+user("b"))
	f(said(theirs)+","+user("a")+","+said(ours)+","+user("b"), user("MARK.A")+","+user("b"))
	f(said(ours)+","+user("a")+","+said(theirs)+","+user("b"), said(theirs)+","+user("b"))
	f(user("a")+","+said(failed+","+text), user("a")+","+said(failed+","+text))
	asked := func(blocks string) string { return `{"role":"user","content":[` + blocks + `]}` }
	f(asked(theirs)+","+user("b"), asked(theirs)+","+user("b"))
	f(user("a")+","+asked(ours+","+text), user("MARK.A")+","+asked(text))
	f(`{"role":"user","content":[{"type":"text","text":"\"type\":\"compaction\""}]}`, `{"role":"user","content":[{"type":"text","text":"\"type\":\"compaction\""}]}`)
	for _, message := range []func(string) string{said, asked} {
		body := `{"messages":[` + message(`{"type":"compaction","content":"mark.forged"}`) + `]}`
		if _, err := messages.New(split.Options{}).Unseal([]byte(body), "mark.", open); !errors.Is(err, refused) {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

// TestTeeNamesCompactions checks that a compaction has the same id in an answer and in a history.
func TestTeeNamesCompactions(t *testing.T) {
	d := messages.New(split.Options{})
	const block = `{"type":"compaction","content":"held","encrypted_content":null}`
	for name, text := range map[string]string{
		"whole": `{"type":"message","content":[` + block + `]}`,
		"streamed": "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"compaction\",\"content\":null}}\n\n" +
			"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"compaction_delta\",\"content\":\"held\"}}\n\n",
	} {
		tee := d.Tee(name == "streamed")
		tee.Write([]byte(text))
		c, err := d.Read([]byte(`{"role":"assistant","content":[` + block + `]}`))
		if got := tee.Answer().Compactions; err != nil || len(got) != 1 || len(c.Files) != 1 || got[0] != c.Files[0].ID || len(got[0]) < 64 {
			t.Errorf("%s: %v, read as %+v (%v)", name, got, c, err)
		}
	}
}

// TestManagement: a compaction that the client asks for is due at the client's limit, or otherwise at the API's default.
func TestManagement(t *testing.T) {
	d := messages.New(split.Options{})
	for edit, want := range map[string]int{
		`{"type":"compact_20260112"}`: 150_000, `{"type":"compact_20260112","trigger":{"type":"input_tokens","value":60000}}`: 60_000, `{"type":"clear_tool_uses_20250919"}`: 0,
	} {
		m := d.StripManagement([]byte(`{"model":"m","context_management":{"edits":[` + edit + `]},"messages":[]}`))
		if m.Limit != want || string(m.Rest) != `{"model":"m","messages":[]}` {
			t.Errorf("%s: %d, rest %s", edit, m.Limit, m.Rest)
		}
	}
}

// TestCompactionReportsUsage: input_tokens does not include tokens that were read from a cache or written to one.
func TestCompactionReportsUsage(t *testing.T) {
	usage := &session.Usage{Input: 100, Cached: 60, Written: 30, Output: 7}
	want := `"usage":{"input_tokens":10,"cache_creation_input_tokens":30,"cache_read_input_tokens":60,"output_tokens":7}`
	for _, streamed := range []bool{false, true} {
		got := string(messages.New(split.Options{}).Compaction(dialect.Compaction{ID: "x", Sealed: "s", Usage: usage, Streamed: streamed}))
		if !strings.Contains(got, want) {
			t.Errorf("streamed %t: %s", streamed, got)
		}
	}
}
