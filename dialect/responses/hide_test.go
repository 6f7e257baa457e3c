package responses_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

const hiddenTool = "recall"

// itemNamed encodes an item: r reasoning, m a message, h a call of a hidden tool, c a call for the client, s a call that the
// server executes, o its output, a an approval request.
func itemNamed(kind byte, id string) string {
	switch kind {
	case 'r':
		return fmt.Sprintf(`{"type":"reasoning","id":%q,"summary":[],"encrypted_content":"sealed"}`, id)
	case 'm':
		return fmt.Sprintf(`{"type":"message","id":%q,"role":"assistant","content":[{"type":"output_text","text":%q}]}`, id, id)
	case 'a':
		return fmt.Sprintf(`{"type":"mcp_approval_request","id":%q}`, id)
	case 's':
		return fmt.Sprintf(`{"type":"shell_call","id":%q,"call_id":"shell"}`, id)
	case 'o':
		return fmt.Sprintf(`{"type":"shell_call_output","id":%q,"call_id":"shell","output":[]}`, id)
	}
	name := map[byte]string{'h': hiddenTool, 'c': "run"}[kind]
	return fmt.Sprintf(`{"type":"function_call","id":%q,"call_id":"call_%s","name":%q,"arguments":"{\"q\":\"%s\"}"}`, id, id, name, id)
}

const tools = `[{"type":"function","name":"run"},{"type":"function","name":"recall"}]`

// responseOf encodes an answer with these items.
func responseOf(n int, status string, items []string) string {
	return fmt.Sprintf(`{"id":"resp_%d","status":%q,"tools":%s,"output":[%s],"usage":{"input_tokens":%d,"output_tokens":2}}`, n, status, tools, strings.Join(items, ","), 10*(n+1))
}

// streamOf encodes the same answer as a stream.
func streamOf(n int, status string, items []string) string {
	var b strings.Builder
	sequence := 0
	event := func(kind, members string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", kind, kind, sequence, members)
		sequence++
	}
	event("response.created", `"response":`+responseOf(n, "in_progress", nil))
	for i, item := range items {
		var o struct{ ID, Type string }
		_ = json.Unmarshal([]byte(item), &o)
		event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, i, item))
		if o.Type != "mcp_approval_request" {
			event("response."+o.Type+".delta", fmt.Sprintf(`"output_index":%d,"item_id":%q,"delta":"data: x"`, i, o.ID))
		}
		event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i, item))
	}
	event("response."+status, `"response":`+responseOf(n, status, items))
	return b.String()
}

// got is what a client received of an answer.
type got struct {
	ID     string
	Output []struct{ ID, Type string }
	Tools  []struct{ Name string }
	Usage  struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	}
}

func (g got) items() string {
	var ids []string
	for _, item := range g.Output {
		ids = append(ids, item.ID)
	}
	return strings.Join(ids, " ")
}

// readStream reads a stream as a strict client does, and checks that its events agree with the response at its end.
func readStream(t *testing.T, stream string) (end got) {
	t.Helper()
	var open, ended []string
	n := 0
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		_, data, is := strings.Cut(event, "\ndata: ")
		var e struct {
			Type     string
			Sequence int    `json:"sequence_number"`
			Index    int    `json:"output_index"`
			ItemID   string `json:"item_id"`
			Item     struct{ ID string }
			Response got
		}
		if err := json.Unmarshal([]byte(data), &e); !is || err != nil || !strings.HasPrefix(event, "event: "+e.Type+"\n") {
			t.Fatalf("event %q: %v", event, err)
		}
		if e.Sequence != n {
			t.Errorf("event %d is numbered %d", n, e.Sequence)
		}
		n++
		switch {
		case e.Type == "response.output_item.added":
			if open = append(open, e.Item.ID); e.Index != len(open)-1 {
				t.Errorf("item %d is numbered %d", len(open)-1, e.Index)
			}
		case e.Type == "response.output_item.done":
			if ended = append(ended, e.Item.ID); e.Index != len(ended)-1 {
				t.Errorf("item %d ends as %d", len(ended)-1, e.Index)
			}
		case e.ItemID != "" && e.ItemID != open[e.Index]:
			t.Errorf("a piece of %s for item %d, which is %s", e.ItemID, e.Index, open[e.Index])
		default:
			end = e.Response
		}
	}
	if strings.Join(open, " ") != end.items() || strings.Join(ended, " ") != end.items() {
		t.Errorf("%v began, %v ended, the end says %s", open, ended, end.items())
	}
	return end
}

// TestSeveralAnswersBecomeOne turns several answers into one. Each letter is an item (see itemNamed). The client's items are named by answer and
// position.
func TestSeveralAnswersBecomeOne(t *testing.T) {
	for _, c := range []struct {
		answers, want string
		again         int // number of answers with hidden calls only
	}{
		{"m", "0m0", 0},
		{"rm", "0r0 0m1", 0},
		{"rc", "0r0 0c1", 0},
		{"rmhc", "0r0 0m1 0c3", 0},
		{"rhc", "0c2-1", 0},
		{"hrc", "0r1 0c2", 0},
		{"rhmc", "0m2-1 0c3-1", 0},
		{"rhrm", "0r2 0m3", 1},
		{"rha", "0a2", 0},
		{"rchc", "0r0 0c1 0c3", 0},
		{"cch", "0c0 0c1", 0},
		{"r", "0r0", 0},
		{"h m", "1m0", 1},
		{"rh rm", "1r0 1m1", 1},
		{"rmh rm", "0r0 0m1 1r0 1m1", 1},
		{"rmhh rh rhc", "0r0 0m1 2c2-1", 2},
		{"rrh rc", "1r0 1c1", 1},
		{"sohm m", "0s0 0o1 0m3 1m0", 1},
		{"shm", "0s0 0m2", 0},
		{"h h", "", 2},
		{"hr rm", "1r0 1m1", 1},
		{"mhrr rm", "0m0 1r0 1m1", 1},
		{"hr", "", 1},
		{"rhr hr m", "2m0", 2},
		{"chr", "0c0 0r2", 0},
	} {
		for _, streamed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s streamed %t", c.answers, streamed), func(t *testing.T) {
				s := responses.New(split.Options{}).FilterAnswers(streamed, func(tool string) bool { return tool == hiddenTool })
				var out strings.Builder
				used, again := 0, 0
				for n, kinds := range strings.Fields(c.answers) {
					var items []string
					for i := range len(kinds) {
						items = append(items, itemNamed(kinds[i], fmt.Sprintf("%d%c%d", n, kinds[i], i)))
					}
					if used += 10 * (n + 1); n > 0 {
						s.Next()
					}
					text := responseOf(n, "completed", items)
					if streamed {
						text = streamOf(n, "completed", items)
					}
					for i := range len(text) {
						out.Write(s.Write([]byte(text[i : i+1])))
					}
					said := s.Close()
					if said.OnlyHidden() {
						again++
					}
					want := strings.Join(items, ",")
					if n == 0 && !strings.Contains(kinds, "h") {
						want = "" // the client has all of it
					}
					if string(said.Message) != want || len(said.Calls) != strings.Count(kinds, "h") {
						t.Errorf("it said %s and called %v, want %s", said.Message, said.Calls, want)
					}
				}
				out.Write(s.Finish())
				if again != c.again {
					t.Errorf("%d answers called hidden tools alone, want %d", again, c.again)
				}
				var end got
				if streamed {
					end = readStream(t, out.String())
				} else if err := json.Unmarshal([]byte(out.String()), &end); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(out.String(), hiddenTool) || end.items() != c.want || end.ID != "resp_0" || end.Usage.Input != used || len(end.Tools) != 1 {
					t.Errorf("the client got %+v, want %s\n%s", end, c.want, &out)
				}
				echo := s.Echo()
				var back []struct{ ID string }
				if err := json.Unmarshal([]byte("["+string(echo)+"]"), &back); err != nil || len(back) != len(end.Output) {
					t.Errorf("the client sends back %s: %v", echo, err)
				}
			})
		}
	}
}

// TestIncompleteAnswersAreNotContinued: an answer that was cut off may lack calls, so that nothing is done for those that it has.
func TestIncompleteAnswersAreNotContinued(t *testing.T) {
	for status, want := range map[string]bool{"completed": true, "incomplete": false, "failed": false} {
		for _, streamed := range []bool{true, false} {
			s := responses.New(split.Options{}).FilterAnswers(streamed, func(tool string) bool { return tool == hiddenTool })
			text := responseOf(0, status, []string{itemNamed('h', "a")})
			if streamed {
				text = streamOf(0, status, []string{itemNamed('h', "a")})
			}
			s.Write([]byte(text))
			if streamed {
				s.Ended() // of a stream with its end mark, this says nothing
			}
			if said := s.Close(); said.OnlyHidden() != want {
				t.Errorf("%s, streamed %t: only hidden calls: %t", status, streamed, said.OnlyHidden())
			}
		}
	}
}

// TestAnswerWithoutHiddenCallsIsUnchanged checks that an answer without hidden calls passes byte for byte and without delay.
func TestAnswerWithoutHiddenCallsIsUnchanged(t *testing.T) {
	s := responses.New(split.Options{}).FilterAnswers(true, func(tool string) bool { return tool == hiddenTool })
	text := strings.ReplaceAll(streamOf(0, "completed", []string{itemNamed('m', "a"), itemNamed('c', "b")}), tools, "[]")
	text = strings.ReplaceAll(text, `"sequence_number":`, `"sequence_number": `) + "data: [DONE]\n\n"
	for event := range strings.SplitAfterSeq(text, "\n\n") {
		if got := string(s.Write([]byte(event))); got != event {
			t.Errorf("%q became %q", event, got)
		}
	}
	if s.Close(); len(s.Finish()) > 0 {
		t.Errorf("left at the end: %q", s.Finish())
	}
}

// TestEventWithoutItsMemberIsUnchanged checks that an event without its response or item passes unchanged.
func TestEventWithoutItsMemberIsUnchanged(t *testing.T) {
	for _, kind := range []string{"response.created", "response.in_progress", "response.completed", "response.output_item.added", "response.output_item.done"} {
		s := responses.New(split.Options{}).FilterAnswers(true, func(tool string) bool { return tool == hiddenTool })
		event := `data: {"type":"` + kind + `","output_index":0}` + "\n\n"
		got := string(s.Write([]byte(event)))
		s.Close()
		if got += string(s.Finish()); got != event {
			t.Errorf("%s became %s", event, got)
		}
	}
}

// TestBrokenAnswerIsNotContinued checks that an answer that was cut off is not continued, and keeps the reasoning at its end.
func TestBrokenAnswerIsNotContinued(t *testing.T) {
	items := []string{itemNamed('r', "a")}
	whole := streamOf(0, "incomplete", append(items, itemNamed('h', "b")))
	for at := range len(whole) {
		s := responses.New(split.Options{}).FilterAnswers(true, func(tool string) bool { return tool == hiddenTool })
		out := string(s.Write([]byte(whole[:at])))
		if s.Close().OnlyHidden() {
			t.Fatalf("asked for more after %q", whole[:at])
		}
		if out += string(s.Finish()); strings.Contains(whole[:at], `"item":{"type":"reasoning"`) != strings.Contains(out, "sealed") && !strings.Contains(whole[:at], "function_call") &&
			strings.HasSuffix(whole[:at], "\n\n") {
			t.Fatalf("%q became %q", whole[:at], out)
		}
	}
}

// TestEmptyReasoningIsNotSentBack checks that reasoning without content is not sent back, nor the ids that depend on it.
func TestEmptyReasoningIsNotSentBack(t *testing.T) {
	s := responses.New(split.Options{}).FilterAnswers(false, func(tool string) bool { return tool == hiddenTool })
	hollow := `{"type":"reasoning","id":"rs_1","summary":[]}`
	s.Write([]byte(responseOf(0, "completed", []string{hollow, itemNamed('h', "a")})))
	want := strings.Replace(itemNamed('h', "a"), `"id":"a",`, "", 1)
	if said := s.Close(); string(said.Message) != want || !said.OnlyHidden() {
		t.Errorf("it said %s, want %s", said.Message, want)
	}
}

// TestCanHideTools checks that no tools are hidden if the model has no choice, or if upstream stores the answer.
func TestCanHideTools(t *testing.T) {
	d := responses.New(split.Options{})
	for members, want := range map[string]bool{
		`"store":false,"tools":` + tools:                                                true,
		`"store":false,"tool_choice":"auto","tools":` + tools:                           true,
		`"store":false,"tool_choice":"required","tools":` + tools:                       true,
		`"store":false,"tool_choice":null,"tools":` + tools:                             true,
		`"store":false,"tool_choice":"none","tools":` + tools:                           false,
		`"store":false,"tool_choice":{"type":"function","name":"run"},"tools":` + tools: false,
		`"store":false,"tool_choice":{"type":"allowed_tools"},"tools":` + tools:         false,
		`"store":false,"tools":[]`:                                                      false,
		`"store":false,"previous_response_id":"resp_1","tools":` + tools:                false,
		`"store":true,"tools":` + tools:                                                 false,
		`"tools":` + tools:                                                              false,
	} {
		r := splitOf(t, `{`+members+`,"input":[{"role":"user","content":"x"}]}`)
		if got := d.CanHideTools(r); got != want {
			t.Errorf("%s: %t", members, got)
		}
	}
}

// TestOffer checks that tools are appended to the client's, also where the history is given as a string or as one item.
func TestOffer(t *testing.T) {
	d := responses.New(split.Options{})
	const added = `,{"type":"function","strict":false,"name":"recall","description":"Looks up.","parameters":{"type":"object"}}`
	for _, format := range []string{
		`{"store":false,"input":INPUT,"tools":[{"type":"web_search"} ADDED]}`,
		`{"tools":[{"type":"web_search"} ADDED],"store":false,"input": INPUT }`,
	} {
		for _, input := range []string{`[{"role":"user","content":"x"}]`, `"x"`, `{"role":"user","content":"x"}`} {
			r := splitOf(t, strings.NewReplacer("INPUT", input, "ADDED", "").Replace(format))
			if !d.CanHideTools(r) {
				t.Errorf("no tools are hidden from %s", r.Body)
			}
			offered := d.Offer(r, []dialect.Tool{{Name: "recall", Description: "Looks up.", Parameters: `{"type":"object"}`}})
			alone := [][]byte{r.Messages[0].Raw}
			two := append(alone, d.Note("n"))
			for want, messages := range map[string][][]byte{
				`[` + string(alone[0]) + `]`:                                   alone,
				`[` + string(slices.Concat(two[0], []byte(","), two[1])) + `]`: two,
			} {
				want = strings.NewReplacer("INPUT", want, "ADDED", added).Replace(format)
				if got := string(slices.Concat(d.Join(offered, messages)...)); got != want {
					t.Errorf("got %s\nwant %s", got, want)
				}
			}
		}
	}
}
