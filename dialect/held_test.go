package dialect_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
)

// callsOf writes a stream of n calls of a tool, whose arguments arrive in pieces.
func callsOf(name, tool string, n int, pieces ...string) string {
	return callsOfEach(name, slices.Repeat([]string{tool}, n), pieces...)
}

// callsOfEach is callsOf for a call of each of the tools.
func callsOfEach(name string, tools []string, pieces ...string) string {
	var b strings.Builder
	var items []string
	event := func(format string, a ...any) { fmt.Fprintf(&b, "data: "+format+"\n\n", a...) }
	for i, tool := range tools {
		switch name {
		case "chat":
			event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"call_%d","function":{"name":%q,"arguments":""}}]}}]}`, i, i, tool)
			for _, p := range pieces {
				event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}}]}`, i, strconv.Quote(p))
			}
		case "messages":
			event(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"call_%d","name":%q,"input":{}}}`, i, i, tool)
			for _, p := range pieces {
				event(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, i, strconv.Quote(p))
			}
			event(`{"type":"content_block_stop","index":%d}`, i)
			event(`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`)
		case "contents":
			args := strings.Join(pieces, "")
			if !json.Valid([]byte(args)) {
				args = strconv.Quote(args)
			}
			part := fmt.Sprintf(`{"functionCall":{"id":"call_%d","name":%q,"args":%s}}`, i, tool, args)
			event(`{"candidates":[{"index":0,"content":{"role":"model","parts":[%s]}}]}`, part)
		case "input":
			item := `{"type":"function_call","id":"fc_%d","call_id":"call_%d","name":%q,"arguments":%s}`
			event(`{"type":"response.output_item.added","output_index":%d,"item":`+item+`}`, i, i, i, tool, `""`)
			for _, p := range pieces {
				event(`{"type":"response.function_call_arguments.delta","output_index":%d,"delta":%s}`, i, strconv.Quote(p))
			}
			items = append(items, fmt.Sprintf(item, i, i, tool, strconv.Quote(strings.Join(pieces, ""))))
			event(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, items[i])
		}
	}
	switch name {
	case "chat":
		event(`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`)
		event(`[DONE]`)
	case "contents":
		event(`{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP"}]}`)
	case "input":
		event(`{"type":"response.completed","response":{"id":"r","status":"completed","output":[%s]}}`, strings.Join(items, ","))
	}
	return b.String()
}

// ranOf writes a stream of n calls that the server has executed itself.
func ranOf(n int) string {
	var b strings.Builder
	for i := range n {
		for j, item := range []string{`{"type":"function_call","call_id":"c%d","name":"run","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c%d","output":""}`} {
			fmt.Fprintf(&b, `data: {"type":"response.output_item.done","output_index":%d,"item":`+item+"}\n\n", 2*i+j, i)
		}
	}
	return b.String()
}

// strain filters a stream in the pieces in which it is read from a connection.
func strain(d dialect.Dialect, stream string) (out string, said dialect.Said) {
	f := d.FilterAnswers(true, func(tool string) bool { return tool == "recall" })
	var b strings.Builder
	for len(stream) > 0 {
		n := min(len(stream), 8<<10)
		b.Write(f.Write([]byte(stream[:n])))
		stream = stream[n:]
	}
	said = f.Close()
	b.Write(f.Finish())
	return b.String(), said
}

// TestManyCallsAreFilteredInLinearTime counts the calls of an answer, visible and hidden ones.
func TestManyCallsAreFilteredInLinearTime(t *testing.T) {
	const few, many, most = 500, 4000, 24 // quadratic work takes 64 times as long
	for name, d := range hostile {
		read := func(stream string) { _, _ = strain(d, stream) }
		for _, tool := range []string{"run", "recall"} {
			t.Run(name+" "+tool, func(t *testing.T) {
				lineartest.Compare(t, read, callsOf(name, tool, few, `{}`), callsOf(name, tool, many, `{}`), most)
			})
		}
		if name == "input" {
			t.Run("executed by the server", func(t *testing.T) { lineartest.Compare(t, read, ranOf(few), ranOf(many), most) })
		}
	}
}

// TestFilterHoldsWhatItReports: an answer whose calls are all the client's leaves nothing to assemble at its end, and Held covers what is kept until then.
func TestFilterHoldsWhatItReports(t *testing.T) {
	pieces := make([]string, 1024)
	for i := range pieces {
		pieces[i] = strings.Repeat("1 ", 2<<10)
	}
	for name, d := range hostile {
		stream := callsOf(name, "run", 1, pieces...)
		f := d.FilterAnswers(true, func(tool string) bool { return tool == "recall" })
		held := 0
		for text := range strings.SplitSeq(stream, "\n") {
			f.Write([]byte(text + "\n"))
			held = max(held, f.Held())
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		said := f.Close()
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 || said.Message != nil || !said.Own {
			t.Errorf("%s: the end of an answer of %d bytes allocates %d", name, len(stream), took)
		}
		if held < 4<<20 || held > 10<<20 {
			t.Errorf("%s: %d bytes were held of %d", name, held, len(stream))
		}
	}
}

// TestForgottenAnswersAreStillFiltered forgets an answer in the middle: the client receives the same, and the calls are known to be lost.
func TestForgottenAnswersAreStillFiltered(t *testing.T) {
	for name, d := range hostile {
		for _, tools := range [][]string{{"run", "recall"}, {"recall", "recall"}, {"run", "run"}} {
			first, second, _ := strings.Cut(callsOfEach(name, tools, `{}`), "\n\n")
			f := d.FilterAnswers(true, func(tool string) bool { return tool == "recall" })
			out := string(f.Write([]byte(first + "\n\n")))
			f.Forget()
			out += string(f.Write([]byte(second)))
			held := f.Held()
			said := f.Close()
			all, want := strain(d, first+"\n\n"+second)
			if said.OnlyHidden() != want.OnlyHidden() || said.Message != nil || len(said.Calls) > 0 || said.Forgotten != len(want.Calls) {
				t.Errorf("%s %v: said %+v, want what was lost of %+v", name, tools, said, want)
			}
			if out += string(f.Finish()); !want.OnlyHidden() && out != all || strings.Contains(out, "recall") {
				t.Errorf("%s %v: the client got %s, want %s", name, tools, out, all)
			}
			if held > 2<<10 {
				t.Errorf("%s %v: %d bytes are held", name, tools, held)
			}
		}
	}
}

// TestLongArgumentsOfHiddenCallsAreCut: a hidden call with long arguments can be answered all the same, whole or streamed.
func TestLongArgumentsOfHiddenCallsAreCut(t *testing.T) {
	pieces := []string{`{"event":"`}
	for range 64 {
		pieces = append(pieces, strings.Repeat("1 ", 2<<10))
	}
	pieces = append(pieces, `"}`)
	arguments := strings.Join(pieces, "")
	wholes := map[string]string{
		"chat":     `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"recall","arguments":%s}}]},"finish_reason":"tool_calls"}]}`,
		"messages": `{"content":[{"type":"tool_use","id":"a","name":"recall","input":%s}],"stop_reason":"tool_use"}`,
		"contents": `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"recall","args":%s}}]},"finishReason":"STOP"}]}`,
		"input":    `{"status":"completed","output":[{"type":"function_call","call_id":"a","name":"recall","arguments":%s}]}`,
	}
	check := func(name string, said dialect.Said) {
		t.Helper()
		if !said.OnlyHidden() || len(said.Calls) != 1 || len(said.Calls[0].Arguments) != dialect.MaxArguments+1 || len(said.Message) > 1<<10 || !strings.Contains(string(said.Message), `{}`) {
			t.Errorf("%s: %.200s, %d calls", name, said.Message, len(said.Calls))
		}
	}
	for name, d := range hostile {
		_, said := strain(d, callsOf(name, "recall", 1, pieces...))
		check(name+" streamed", said)
		quoted := strconv.Quote(arguments)
		if name == "messages" || name == "contents" {
			quoted = arguments
		}
		f := d.FilterAnswers(false, func(tool string) bool { return tool == "recall" })
		f.Write(fmt.Appendf(nil, wholes[name], quoted))
		check(name, f.Close())
	}
}

// TestLongEventsAreNotRead: an event that is too long passes as it is, unless a hidden call came before it or it names a hidden tool.
func TestLongEventsAreNotRead(t *testing.T) {
	long := "data: {\"type\":\"x\",\"text\":\"" + strings.Repeat("x", dialect.MaxEvent) + "\"}\n\n"
	for name, d := range hostile {
		own := callsOf(name, "run", 1, `{}`)
		if out, said := strain(d, long+own); out != long+own || len(said.Calls) > 0 {
			t.Errorf("%s: a stream of %d bytes became %d", name, len(long+own), len(out))
		}
		begun, _, _ := strings.Cut(callsOf(name, "recall", 1, `{}`), "\n")
		for _, stream := range []string{begun + "\n\n" + long, "data: {\"name\":\"recall\"," + long[len("data: {"):]} {
			f := d.FilterAnswers(true, func(tool string) bool { return tool == "recall" })
			if out := f.Write([]byte(stream)); !f.TooLong() || len(out) > 1<<10 {
				t.Errorf("%s: %d bytes passed after a hidden call", name, len(out))
			}
		}
	}
}
