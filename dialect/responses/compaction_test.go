package responses_test

import (
	"errors"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/session"
)

const trigger = `{"type":"compaction_trigger"}`

func TestCompacts(t *testing.T) {
	d := responses.New(split.Options{})
	for body, want := range map[string]bool{
		`{"input":[{"role":"user","content":"a"},` + trigger + `]}`:                                               true,
		`{"input":[` + trigger + `]}`:                                                                             true,
		`{"input":[` + trigger + `,{"role":"user","content":"a"}]}`:                                               true,
		`{"input":` + trigger + `}`:                                                                               true,
		`{"input":[` + trigger + `,{"role":"assistant","content":"a"},{"role":"user","content":"b"}]}`:            false,
		`{"input":[` + trigger + `,{"type":"compaction","encrypted_content":"x"},{"role":"user","content":"b"}]}`: false,
		`{"input":[{"role":"user","content":"{\"type\":\"compaction_trigger\"}"}]}`:                               false,
		`{"instructions":"compaction_trigger","input":"compaction_trigger"}`:                                      false,
		`{"input":[{"role":"user","content":"a"}` + trigger:                                                       false,
		`{"model":"m"}`: false,
	} {
		if _, got := d.RequestsCompaction([]byte(body), false); got != want {
			t.Errorf("%s: %t", body, got)
		}
	}
}

func TestCompactsByPath(t *testing.T) {
	if model, asks := responses.New(split.Options{}).RequestsCompaction([]byte(`{"input":"a","model":"m"}`), true); model != "m" || !asks {
		t.Errorf("%q, %t", model, asks)
	}
}

func TestAsk(t *testing.T) {
	d := responses.New(split.Options{})
	f := func(body, want string, wanted bool) {
		t.Helper()
		if got, streamed := d.Ask([]byte(body), "why?"); string(got) != want || streamed != wanted {
			t.Errorf("%s\ngot  %s (streamed %t)\nwant %s", body, got, streamed, want)
		}
	}
	const question = `{"type":"message","role":"user","content":[{"type":"input_text","text":"why?"}]}`
	f(`{"model":"m","stream":true,"tool_choice":"auto","tools":[],"input":[{"role":"user","content":"a"}, `+trigger+`]}`,
		`{"model":"m","tools":[],"input":[{"role":"user","content":"a"},`+question+`],"tool_choice":"none"}`, true)
	f(`{"input":[`+trigger+`],"model":"m"}`, `{"input":[`+question+`],"model":"m","tool_choice":"none"}`, false)
	f(`{"input":[{"role":"user","content":"a"}]}`, `{"input":[{"role":"user","content":"a"},`+question+`],"tool_choice":"none"}`, false)
	f(`{"input":"a"}`, `{"input":[`+`{"type":"message","role":"user","content":"a"}`+`,`+question+`],"tool_choice":"none"}`, false)
	f(`{"input":{"role":"user","content":"a"}}`, `{"input":[{"role":"user","content":"a"},`+question+`],"tool_choice":"none"}`, false)
	f(`{"input":`+trigger+`}`, `{"input":[`+question+`],"tool_choice":"none"}`, false)
	f(`{"model":"m","previous_response_id":"r"}`, `{"model":"m","previous_response_id":"r","input":[`+question+`],"tool_choice":"none"}`, false)
	f(`{"model":"m","previous_response_id":"r","input":null}`, `{"model":"m","previous_response_id":"r","input":[`+question+`],"tool_choice":"none"}`, false)
	f(`{"model":"m","previous_response_id":null}`, `{"model":"m","previous_response_id":null,"tool_choice":"none"}`, false) // there is no history
}

func TestUnseal(t *testing.T) {
	d := responses.New(split.Options{})
	failed := errors.New("it is forged")
	open := func(sealed string) (string, error) {
		if sealed == "ours forged" {
			return "", failed
		}
		return "record " + sealed, nil
	}
	f := func(body, want string) {
		t.Helper()
		got, err := d.Unseal([]byte(body), "ours ", open)
		if err != nil || string(got) != want {
			t.Errorf("%s\ngot  %s (%v)\nwant %s", body, got, err, want)
		}
	}
	note := string(d.Note("record ours 1"))
	f(`{"input":[{"role":"user","content":"a"}, {"type":"compaction","id":"c","encrypted_content":"ours 1"}],"model":"m"}`,
		`{"input":[{"role":"user","content":"a"},`+note+`],"model":"m"}`)
	f(`{"input":{"type":"compaction","id":"c","encrypted_content":"ours 1"},"model":"m"}`, `{"input":[`+note+`],"model":"m"}`)
	for _, body := range []string{
		`{"input": {"type":"compaction","encrypted_content":"upstream's"}}`,
		`{"input": [{"type":"compaction","encrypted_content":"upstream's"}]}`,
		`{"input": [{"type":"reasoning","encrypted_content":"ours 1"},{"type":"compaction","encrypted_content":"another's"}]}`,
		`{"input": [{"role":"user","content":"{\"type\":\"compaction\",\"encrypted_content\":\"ours 1\"}"}]}`,
		`{"input": [{"role":"user","type":"message","x":{"type":"compaction"},"encrypted_content":"ours 1"}]}`,
		`{"input": "encrypted_content"}`, `{"input": [{"type":"compaction","encrypted_content":`, ``,
	} {
		f(body, body)
	}
	if _, err := d.Unseal([]byte(`{"input":[{"type":"compaction","encrypted_content":"ours forged"}]}`), "ours ", open); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

// TestCompaction checks that an encoded answer can be read, and contains a single compaction.
func TestCompaction(t *testing.T) {
	d := responses.New(split.Options{})
	for _, streamed := range []bool{false, true} {
		body := d.Compaction(dialect.Compaction{ID: "x", Model: "m", Sealed: "s", Streamed: streamed, Usage: &session.Usage{Input: 9, Cached: 3, Output: 2}})
		tee := d.Tee(streamed)
		tee.Write(body)
		if got := tee.Answer(); !tee.Ended() || got.Finish != "completed" || got.Usage == nil || *got.Usage != (session.Usage{Input: 9, Cached: 3, Output: 2}) {
			t.Errorf("streamed %t: %+v of %s", streamed, got, body)
		}
		if !d.HasCompaction(body) {
			t.Errorf("no item in %s", body)
		}
	}
	if d.HasCompaction([]byte(`{"output":[{"type":"message","content":[{"text":"\"type\":\"compaction\""}]}]}`)) {
		t.Error("a text was taken for an item")
	}
}

// TestTeeNamesCompactions checks that a compaction has the same id in an answer and in a history.
func TestTeeNamesCompactions(t *testing.T) {
	d := responses.New(split.Options{})
	const item = `{"type":"compaction","id":"cmp","encrypted_content":"held"}`
	for name, text := range map[string]string{
		"whole":    `{"object":"response.compaction","output":[` + item + `],"usage":null}`,
		"streamed": "data: {\"type\":\"response.output_item.done\",\"item\":" + item + "}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[" + item + "]}}\n\n",
	} {
		tee := d.Tee(name == "streamed")
		tee.Write([]byte(text))
		c, err := d.Read([]byte(item))
		if got := tee.Answer().Compactions; err != nil || len(got) != 1 || len(c.Files) != 1 || got[0] != c.Files[0].ID || len(got[0]) < 64 {
			t.Errorf("%s: %v, read as %+v (%v)", name, got, c, err)
		}
	}
	endless := d.Tee(true)
	for range 2 * split.MaxCalls {
		endless.Write([]byte("data: {\"type\":\"response.output_item.done\",\"item\":" + item + "}\n\n"))
	}
	if n := len(endless.Answer().Compactions); n != split.MaxCalls {
		t.Errorf("%d compactions of one answer were kept", n)
	}
}

// TestManagement: if a body has several thresholds, the highest one applies.
func TestManagement(t *testing.T) {
	for entries, want := range map[string]int{
		``: 0, `{"type":"compaction","compact_threshold":1000}`: 1000, `{"compact_threshold":1000},{"compact_threshold":3000},{"compact_threshold":2000}`: 3000,
	} {
		m := responses.New(split.Options{}).StripManagement([]byte(`{"model":"m","context_management":[` + entries + `],"input":[]}`))
		if m.Limit != want || string(m.Rest) != `{"model":"m","input":[]}` {
			t.Errorf("%s: %d, rest %s", entries, m.Limit, m.Rest)
		}
	}
}
