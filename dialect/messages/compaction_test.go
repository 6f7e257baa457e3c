package messages_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
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
	f(`{"role":"user","content":[{"type":"text","text":"\"type\":\"compaction\""}]}`, `{"role":"user","content":[{"type":"text","text":"\"type\":\"compaction\""}]}`)
	body := `{"messages":[` + said(`{"type":"compaction","content":"mark.forged"}`) + `]}`
	if _, err := messages.New(split.Options{}).Unseal([]byte(body), "mark.", open); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
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
