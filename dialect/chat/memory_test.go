package chat_test

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

var remembering = chat.Options{Fields: []string{"metadata.session_id", "id"}, Remember: 1 << 20}

// bodyOf returns a body with the given text before and behind its messages.
func bodyOf(before string, messages []string, behind string) []byte {
	return []byte(`{"padding":"` + strings.Repeat("p", 33<<10) + `",` + before + `"messages":[` + strings.Join(messages, ",") + `]` + behind + `}`)
}

func saying(n int, text string) string {
	switch n % 3 {
	case 1:
		return fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":"c%d","type":"function","function":{"name":"ls","arguments":"{\"a\":%d}"}}],"content":%q}`, n, n, text)
	case 2:
		return fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, n-1, text)
	}
	return fmt.Sprintf(`{"role":"user","content":%q}`, text)
}

func sayings(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = saying(i, fmt.Sprintf("this is message %d of a conversation", i))
	}
	return all
}

// checked splits a copy of the body, compares the result with that of a dialect without a memory, and overwrites the copy.
func checked(t testing.TB, d *chat.Dialect, body []byte) *dialect.Request {
	t.Helper()
	fresh := chat.New(chat.Options{Fields: remembering.Fields})
	want, wantErr := fresh.Split("", body)
	mine := bytes.Clone(body)
	got, err := d.Split("", mine)
	if !reflect.DeepEqual(err, wantErr) {
		t.Fatalf("error %v, want %v, of %s", err, wantErr, body)
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v\nwant %+v\nof %s", got, want, body)
	}
	return got
}

// TestRemembered checks that of a longer conversation, only the part after its known prefix is read, whatever surrounds its messages.
func TestRemembered(t *testing.T) {
	for name, around := range map[string][2]string{
		"in front": {`"model":"m","metadata":{"session_id":"s"},"tools":[{"a":1}],`, ``},
		"behind":   {``, `,"model":"m","metadata":{"session_id":"s"},"stream":true`},
	} {
		t.Run(name, func(t *testing.T) {
			d, all := chat.New(remembering), sayings(41)
			for n := 1; n <= len(all); n += 2 {
				body := bodyOf(around[0], all[:n], around[1])
				if known := chat.Known(d, body); known != max(0, n-2) {
					t.Errorf("%d of %d messages are known", known, n)
				}
				checked(t, d, body)
			}
			edited := slices.Clone(all)
			edited[39] = saying(39, "something else than before")
			if known := chat.Known(d, bodyOf(around[0], edited, around[1])); known != 39 {
				t.Errorf("after an edit of the last but one %d messages are known", known)
			}
			edited[39], edited[1] = all[39], saying(1, "THIS is message 1 of a conversation") // of the same length
			if known := chat.Known(d, bodyOf(around[0], edited, around[1])); known != 0 {
				t.Errorf("after an edit in place of the second %d messages are known", known)
			}
			edited[1] = saying(1, "something else")
			if known := chat.Known(d, bodyOf(around[0], edited, around[1])); known != 0 {
				t.Errorf("after an edit of the second %d messages are known", known)
			}
			if bodies, _ := chat.Remembered(d); bodies != 1 {
				t.Errorf("%d beginnings are held of one conversation", bodies)
			}
		})
	}
}

// TestMemoryChangesNothing edits conversations that share a memory. The result for each body must equal that of a dialect
// without a memory, and earlier results must not change.
func TestMemoryChangesNothing(t *testing.T) {
	property.Check(t, func(r *rapid.T) {
		d := chat.New(remembering)
		var said []*dialect.Request
		var copies []string
		messages := sayings(4)
		r.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {},
			"go on": func(r *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(r, "more") {
					messages = append(slices.Clip(messages), saying(len(messages), rapid.StringN(0, 20, -1).Draw(r, "text")))
				}
			},
			"edit": func(r *rapid.T) {
				messages = slices.Clone(messages)
				messages[rapid.IntRange(0, len(messages)-1).Draw(r, "which")] = saying(rapid.IntRange(0, 2).Draw(r, "role"), "edited")
			},
			"cut": func(r *rapid.T) { messages = messages[:rapid.IntRange(1, len(messages)).Draw(r, "to")] },
			"spoil": func(r *rapid.T) {
				body := bodyOf("", messages, `,"model":"m"`)
				at := rapid.IntRange(1200, len(body)-1).Draw(r, "at")
				checked(t, d, append(body[:at:at], rapid.SampledFrom([]string{"", "}", `,"messages":[]`, "\xff", strings.Repeat("[", rawjson.DefaultDepth), " "}).Draw(r, "with")...))
				body[at] = rapid.Byte().Draw(r, "byte")
				checked(t, d, body)
			},
			"send": func(r *rapid.T) {
				before := rapid.SampledFrom([]string{"", `"model":"m",`, `"id":"x", `, `"messages":[],`}).Draw(r, "before")
				behind := rapid.SampledFrom([]string{"", `,"model":"m","tools":[1]`, `,"id":"y"`, `,"messages":[]`, ` `}).Draw(r, "behind")
				if got := checked(t, d, bodyOf(before, messages, behind)); got != nil {
					said, copies = append(said, got), append(copies, fmt.Sprintf("%+v", got.Messages))
				}
			},
		})
		for i := range said {
			if got := fmt.Sprintf("%+v", said[i].Messages); got != copies[i] {
				t.Fatalf("what was said of body %d changed to %s\nfrom %s", i, got, copies[i])
			}
		}
	})
}

// TestConcurrentContinuations splits different continuations of the same prefix concurrently.
func TestConcurrentContinuations(t *testing.T) {
	d, all := chat.New(remembering), sayings(20)
	checked(t, d, bodyOf("", all, ""))
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			mine := slices.Clone(all)
			for range 20 {
				mine = append(mine, saying(len(mine), fmt.Sprintf("the answer to %d", i)))
				checked(t, d, bodyOf("", mine, ""))
			}
		})
	}
	work.Wait()
}

// TestRepeatedBodyIsNotCopied sends each body twice. Only the part after the known prefix is read, and the text is not copied each time.
func TestRepeatedBodyIsNotCopied(t *testing.T) {
	all := append(sayings(1), saying(1, strings.Repeat("x", 4<<20)))
	var bodies [16][]byte
	for i := range bodies {
		bodies[i] = bodyOf("", all, "")
		all = append(all, saying(len(all), "the next step"))
	}
	d := chat.New(chat.Options{Remember: 64 << 20})
	var before, after runtime.MemStats
	for i, body := range bodies {
		if i == 2 {
			runtime.ReadMemStats(&before)
		}
		for range 2 {
			if _, err := d.Split("", body); err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("%d bytes are allocated", took)
	}
}

// TestMemoryIsBounded checks that the memory stays within its limit, and drops the least recently used body first.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 1 << 20
	d := chat.New(chat.Options{Remember: limit})
	body := func(i int) []byte {
		return bodyOf("", []string{saying(0, fmt.Sprintf("conversation %d", i)), saying(1, strings.Repeat("long ", 1000))}, "")
	}
	for i := range 60 {
		checked(t, d, body(i))
		checked(t, d, body(0))
	}
	if bodies, held := chat.Remembered(d); held > limit || bodies < 10 {
		t.Errorf("%d bytes are held of %d bodies", held, bodies)
	}
	if chat.Known(d, body(0)) != 2 || chat.Known(d, body(59)) != 2 || chat.Known(d, body(1)) != 0 {
		t.Error("not the idlest was forgotten")
	}
	before, _ := chat.Remembered(d)
	checked(t, d, bodyOf("", []string{saying(0, strings.Repeat("too long ", 100_000))}, ""))
	if after, _ := chat.Remembered(d); after != before {
		t.Error("a body that takes most of the memory is remembered")
	}
	d = chat.New(chat.Options{Remember: 64 * limit})
	for i := range 600 {
		checked(t, d, bodyOf("", []string{saying(0, fmt.Sprintf("short conversation %d", i))}, ""))
	}
	if bodies, _ := chat.Remembered(d); bodies != 512 {
		t.Errorf("%d bodies are looked through", bodies)
	}
}

// TestMemoryHoldsWhatItCounts has clients remove a large message. The heap in use must match the bytes counted, including
// those of the removed message.
func TestMemoryHoldsWhatItCounts(t *testing.T) {
	const limit, rounds = 8 << 20, 12
	large := strings.Repeat("x", 2<<20)
	for name, last := range map[string]string{
		"a text":       saying(0, large),
		"an id":        `{"role":"tool","tool_call_id":"` + large + `"}`,
		"ids of calls": `{"role":"assistant","tool_calls":[{"id":"` + large + `"}]}`,
		"calls":        strings.Repeat(`{"role":"assistant","tool_calls":[`+strings.Repeat(`{},`, 4000)+`{}]},`, 20) + saying(0, "end"),
	} {
		t.Run(name, func(t *testing.T) {
			d, before := chat.New(chat.Options{Remember: limit}), inUse()
			split := func(messages ...string) {
				if _, err := d.Split("", bodyOf("", messages, "")); err != nil {
					t.Fatal(err)
				}
			}
			for i := range rounds {
				first := saying(0, fmt.Sprintf("this is conversation %d", i))
				split(first, last)
				split(first, saying(1, "something short"))
				split(first, saying(1, "something short"), saying(2, "and more"))
			}
			_, counted := chat.Remembered(d)
			got := inUse() - before
			runtime.KeepAlive(d)
			if got > limit+limit/4 {
				t.Errorf("%d bytes are held, of which %d are counted, of %d", got, counted, limit)
			}
		})
	}
}

// inUse returns the live bytes of the heap.
func inUse() int {
	var m runtime.MemStats
	for range 2 { // the second one empties the pools
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestMemoryDoesNotAliasTheBody overwrites a body, as happens when its buffer is reused.
func TestMemoryDoesNotAliasTheBody(t *testing.T) {
	d := chat.New(remembering)
	before := `"model":"m","max_tokens":5,"thinking":{"type":"enabled"},"tools":[{"a":1}],"metadata":{"session_id":"s"},`
	first := bodyOf(before, sayings(2), "")
	if _, err := d.Split("", first); err != nil {
		t.Fatal(err)
	}
	clear(first)
	got := checked(t, d, bodyOf(before, sayings(4), ""))
	if !got.NeedsReasoning || got.Model != "m" || got.MaxOutput != 5 || got.Fields["metadata.session_id"] != "s" {
		t.Errorf("got %+v", got)
	}
}
