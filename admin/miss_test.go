package admin_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// promptCache is an upstream's prompt cache: automatic, or up to marks as Anthropic's.
type promptCache struct {
	mu    sync.Mutex
	seen  map[[sha256.Size]byte]bool
	keeps bool // it keeps prompts, and finds them
}

// cachedPart is a part of a prompt. A prefix of parts can be cached.
type cachedPart struct {
	raw    []byte
	marked bool
}

var cacheMark = regexp.MustCompile(`"cache_control":\{[^}]*\},`)

// blocks returns the parts of a list of blocks, or of a text.
func blocks(raw json.RawMessage) (all []cachedPart) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	for _, one := range list {
		all = append(all, cachedPart{cacheMark.ReplaceAll(one, nil), cacheMark.Match(one)})
	}
	return all
}

// partsOf returns the parts of a prompt in the order in which they are cached.
func partsOf(r *fakeupstream.Request) []cachedPart {
	var body struct {
		Tools, System, Instructions json.RawMessage
		SystemInstruction           json.RawMessage
	}
	_ = json.Unmarshal(r.Body, &body)
	all := []cachedPart{{raw: []byte(r.Model + r.Header.Get("Authorization"))}, {raw: body.Tools}, {raw: body.Instructions}, {raw: body.SystemInstruction}}
	all = append(all, blocks(body.System)...)
	for _, m := range r.Messages {
		var one struct {
			Role    string
			Content json.RawMessage
		}
		if _ = json.Unmarshal(m, &one); len(one.Content) > 0 && strings.HasSuffix(r.Path, "/messages") {
			all = append(all, blocks(one.Content)...)
		} else {
			all = append(all, cachedPart{raw: m})
		}
	}
	return all
}

// use adds a prompt to the cache and returns what it is billed.
func (c *promptCache) use(r *fakeupstream.Request) *fakeupstream.Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	const bytesPerToken, least, lookBack = 4, 1024, 20
	byMarks := strings.HasSuffix(r.Path, "/messages")
	var prefix [sha256.Size]byte
	var prefixes [][sha256.Size]byte
	var ends []int
	size, cached, written := 0, 0, 0
	parts := partsOf(r)
	for i, p := range parts {
		prefix = sha256.Sum256(append(prefix[:], p.raw...))
		size += len(p.raw) / bytesPerToken
		prefixes, ends = append(prefixes, prefix), append(ends, size)
		if !byMarks && c.seen[prefix] {
			cached = size
		}
		if byMarks && p.marked {
			written = size
			for j := i; j >= 0 && j > i-lookBack; j-- {
				if c.seen[prefixes[j]] {
					cached = max(cached, ends[j])
				}
			}
		}
	}
	if !c.keeps || cached < least {
		cached = 0
	}
	for i, p := range prefixes {
		if c.keeps && (!byMarks || parts[i].marked) {
			c.seen[p] = true
		}
	}
	return &fakeupstream.Usage{Prompt: size, Completion: 5, Cached: cached, Written: max(written-cached, 0)}
}

func (c *promptCache) keep(keeps bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keeps = keeps
}

// line is a message of a conversation in any protocol.
type line struct{ role, text string } // user, assistant, call, result

// talk is a client's conversation.
type talk struct {
	r               *missRig
	session         string
	protocol, model string
	system, tool    string
	description     string // of the tool
	lines           []line
	bare            bool             // without tools
	mark            func(n int) bool // whether the n-th message is marked; nil: the last one is
}

// missRig is a service behind which a prompt cache is simulated.
type missRig struct {
	*rig
	cache *promptCache
	later atomic.Int64 // how far the clock is ahead
	hold  chan chan struct{}
	omit  atomic.Bool
}

func startMisses(t *testing.T) *missRig {
	t.Helper()
	r := &missRig{cache: &promptCache{seen: map[[sha256.Size]byte]bool{}, keeps: true}, hold: make(chan chan struct{}, 4)}
	up := fakeupstream.New(fakeupstream.Options{SummariserModels: []string{summariser}, Reply: func(req *fakeupstream.Request) fakeupstream.Answer {
		a := fakeupstream.Answer{Content: "Well.", Usage: r.cache.use(req), OmitUsage: r.omit.Load()}
		select {
		case held := <-r.hold:
			a.Fault.HoldHeaders = held
		default:
		}
		return a
	}})
	must(t, up.Start())
	t.Cleanup(up.Close)
	r.rig = start(t, func(cfg *config.Config) {
		cfg.Upstream.BaseURL = up.URL() + "/v1"
		cfg.LLMs = map[string]config.LLM{"cheap": {Model: summariser, BaseURL: cfg.Upstream.BaseURL, Timeout: patience}}
		cfg.Condenser.MaxSize = 100
		cfg.Models["second-model"] = cfg.Models[agentModel]
	}, func(r2 *rig) { r2.now = func() time.Time { return time.Now().Add(time.Duration(r.later.Load())) } })
	r.up = up
	return r
}

// long is a text of about 1,500 tokens in the simulated cache's count.
func long(topic string) string { return topic + strings.Repeat(" and so on, as was said before;", 200) }

// body returns a request in the conversation's protocol.
func (c *talk) body() (path string, body map[string]any) {
	var list []any
	parameters := map[string]any{"type": "object", "properties": map[string]any{}}
	for i, l := range c.lines {
		list = append(list, c.message(i, l))
	}
	switch c.protocol {
	case "messages":
		system := map[string]any{"type": "text", "text": c.system}
		tools := []any{map[string]any{"name": c.tool, "description": c.description, "input_schema": parameters}}
		return "/v1/messages", map[string]any{"model": c.model, "max_tokens": 500, "system": []any{system}, "messages": list, "tools": tools}
	case "responses":
		tools := []any{map[string]any{"type": "function", "name": c.tool, "description": c.description, "parameters": parameters}}
		return "/v1/responses", map[string]any{"model": c.model, "instructions": c.system, "input": list, "store": false, "tools": tools}
	case "gemini":
		tools := []any{map[string]any{"functionDeclarations": []any{map[string]any{"name": c.tool, "description": c.description}}}}
		return "/v1beta/models/" + c.model + ":generateContent", map[string]any{
			"contents": list, "systemInstruction": map[string]any{"parts": []any{map[string]any{"text": c.system}}}, "tools": tools,
		}
	}
	tools := []any{map[string]any{"type": "function", "function": map[string]any{"name": c.tool, "description": c.description, "parameters": parameters}}}
	list = append([]any{map[string]any{"role": "system", "content": c.system}}, list...)
	return "/v1/chat/completions", map[string]any{"model": c.model, "messages": list, "tools": tools}
}

// message returns a message in the conversation's protocol.
func (c *talk) message(i int, l line) any {
	type object = map[string]any
	id := "call_" + c.session
	switch c.protocol {
	case "messages":
		role, block := cmp.Or(map[string]string{"call": "assistant", "result": "user"}[l.role], l.role), object{"type": "text", "text": l.text}
		switch l.role {
		case "call":
			block = object{"type": "tool_use", "id": id, "name": c.tool, "input": object{"at": l.text}}
		case "result":
			block = object{"type": "tool_result", "tool_use_id": id, "content": l.text}
		}
		if c.mark == nil && i == len(c.lines)-1 || c.mark != nil && c.mark(i) {
			block["cache_control"] = object{"type": "ephemeral"}
		}
		return object{"role": role, "content": []any{block}}
	case "responses":
		switch l.role {
		case "call":
			return object{"type": "function_call", "call_id": id, "name": c.tool, "arguments": fmt.Sprintf(`{"at":%q}`, l.text)}
		case "result":
			return object{"type": "function_call_output", "call_id": id, "output": l.text}
		}
		return object{"type": "message", "role": l.role, "content": l.text}
	case "gemini":
		role, part := cmp.Or(map[string]string{"user": "user", "result": "user"}[l.role], "model"), object{"text": l.text}
		switch l.role {
		case "call":
			part = object{"functionCall": object{"name": c.tool, "args": object{"at": l.text}}}
		case "result":
			part = object{"functionResponse": object{"name": c.tool, "response": object{"output": l.text}}}
		}
		return object{"role": role, "parts": []any{part}}
	}
	switch l.role {
	case "call":
		return object{"role": "assistant", "content": nil, "tool_calls": []any{object{"id": id, "type": "function", "function": object{"name": c.tool, "arguments": fmt.Sprintf(`{"at":%q}`, l.text)}}}}
	case "result":
		return object{"role": "tool", "tool_call_id": id, "content": l.text}
	}
	return object{"role": l.role, "content": l.text}
}

// requested is a request that was answered.
type requested struct{ id, session, thread string }

// post sends the conversation.
func (c *talk) post() requested {
	c.r.t.Helper()
	path, body := c.body()
	if c.bare {
		delete(body, "tools")
	}
	text, err := json.Marshal(body)
	must(c.r.t, err)
	req, err := http.NewRequestWithContext(c.r.t.Context(), http.MethodPost, "http://"+c.r.app.Addr()+path, bytes.NewReader(text))
	must(c.r.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer client-key")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Dewpoint-Session", c.session)
	resp, err := (&http.Client{Transport: &c.r.http}).Do(req)
	must(c.r.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	must(c.r.t, err)
	if resp.StatusCode != http.StatusOK {
		c.r.t.Fatalf("%s %s: %d %s", c.session, path, resp.StatusCode, answer)
	}
	h := resp.Header
	return requested{h.Get("X-Dewpoint-Request-Id"), h.Get("X-Dewpoint-Session"), h.Get("X-Dewpoint-Thread")}
}

// shownMiss is the part of a request's record that says why the cache was missed.
type shownMiss struct {
	Miss    string `json:"cache_miss"`
	Split   string
	SplitAt int `json:"split_at"`
	Usage   struct{ Input, Cached int }
}

// recorded waits for the record of a request.
func (r *missRig) recorded(q requested) (s shownMiss) {
	r.t.Helper()
	until(r.t, "the request is recorded", func() bool {
		a := r.call(http.MethodGet, "/api/v1/requests/"+q.id)
		return a.StatusCode == http.StatusOK && json.Unmarshal(a.body, &s) == nil
	})
	return s
}

// ask sends the conversation and returns its record.
func (c *talk) ask() shownMiss {
	c.r.t.Helper()
	return c.r.recorded(c.post())
}

// begin begins a conversation and sends its first steps, of which only the first one misses the cache.
func (r *missRig) begin(protocol, name string) *talk {
	r.t.Helper()
	c := &talk{r: r, session: name, protocol: protocol, model: agentModel, system: long("You look at " + name + "."), tool: "look", description: long("Looks.")}
	all := []line{
		{"user", long("Please look at " + name + ".")}, {"assistant", long("I shall.")}, {"user", long("Begin.")}, {"call", name}, {"result", long("Result: " + name + ".")},
		{"assistant", long("It is done.")}, {"user", long("Go on.")},
	}
	for n := 1; n <= len(all); n += 2 {
		c.lines = all[:n:n]
		want := ""
		if n == 1 {
			want = "first"
		}
		if got := c.ask(); got.Miss != want {
			r.t.Fatalf("%s, %s: before anything happened, step %d: %+v", protocol, name, n, got)
		}
	}
	return c
}

// on adds an answer and what the user says next.
func (c *talk) on() {
	c.lines = append(slices.Clone(c.lines), line{"assistant", long("Further on.")}, line{"user", long(fmt.Sprintf("And on, %d.", len(c.lines)))})
}

// injected are causes of cache misses: what a client, Dewpoint or upstream does to a conversation, and at which message.
var injected = []struct {
	cause     string
	at        int
	protocols []string // none: all
	do        func(c *talk) shownMiss
}{
	{cause: "user_changed", at: 3, do: func(c *talk) shownMiss { c.lines[2].text = long("Begin anew."); c.on(); return c.ask() }},
	{cause: "answer_changed", at: 2, do: func(c *talk) shownMiss { c.lines[1].text = long("I would rather not."); c.on(); return c.ask() }},
	{cause: "result_changed", at: 5, do: func(c *talk) shownMiss { c.lines[4].text = "[old result cleared]"; c.on(); return c.ask() }},
	{cause: "left_out", at: 2, do: func(c *talk) shownMiss { c.lines = slices.Delete(c.lines, 1, 3); c.on(); return c.ask() }},
	{cause: "inserted", at: 2, do: func(c *talk) shownMiss {
		c.lines = slices.Insert(c.lines, 1, line{"assistant", "Wait."}, line{"user", long("Yes?")})
		c.on()
		return c.ask()
	}},
	{cause: "tools_changed", do: func(c *talk) shownMiss { c.description = "Looks closely."; c.on(); return c.ask() }},
	{cause: "system_changed", do: func(c *talk) shownMiss { c.system = "It is Tuesday. " + c.system; c.on(); return c.ask() }},
	{cause: "model_changed", do: func(c *talk) shownMiss { c.model = "second-model"; c.on(); return c.ask() }},
	{cause: "condensed", do: func(c *talk) shownMiss { return c.condensed() }},
	{cause: "sent_whole", do: func(c *talk) shownMiss {
		c.condensed()
		c.r.override("/api/v1/condensing", "off", "1h")
		defer c.r.override("/api/v1/condensing", "", "")
		c.r.cache.keep(false) // it has forgotten the history as it was before
		defer c.r.cache.keep(true)
		c.on()
		return c.ask()
	}},
	{cause: "expired", do: func(c *talk) shownMiss {
		c.r.later.Add(int64(25 * time.Hour))
		c.r.cache.keep(false)
		c.on()
		defer c.r.cache.keep(true)
		return c.ask()
	}},
	{cause: "provider", do: func(c *talk) shownMiss {
		c.r.cache.keep(false)
		defer c.r.cache.keep(true)
		c.on()
		return c.ask()
	}},
	{cause: "too_short", do: func(c *talk) shownMiss {
		short := *c
		short.session, short.system, short.lines = c.session+"-short", "You help.", []line{{"user", "Hello."}}
		short.bare = true
		return short.ask()
	}},
	{cause: "not_reported", do: func(c *talk) shownMiss {
		c.r.omit.Store(true)
		defer c.r.omit.Store(false)
		c.on()
		return c.ask()
	}},
	{cause: "not_marked", protocols: []string{"messages"}, do: func(c *talk) shownMiss { c.mark = func(int) bool { return false }; c.on(); return c.ask() }},
	{cause: "marks_moved", protocols: []string{"messages"}, do: func(c *talk) shownMiss {
		c.mark = func(n int) bool { return n == 0 } // only the first message is marked now
		c.on()
		return c.ask()
	}},
	{cause: "marks_moved", protocols: []string{"messages"}, do: func(c *talk) shownMiss {
		for range 13 { // 26 blocks, and a mark at the end only
			c.on()
		}
		return c.ask()
	}},
	{cause: "concurrent", do: func(c *talk) shownMiss { return c.concurrent() }},
	{cause: "upstream_changed", do: func(c *talk) shownMiss {
		next := *c.r.cfg
		next.Upstream.APIKey = config.Secret("another-" + c.session)
		must(c.r.t, c.r.app.Reload(&next))
		c.on()
		return c.ask()
	}},
}

// condensed condenses the conversation and returns the first request that shows it.
func (c *talk) condensed() shownMiss {
	c.r.t.Helper()
	q := c.post()
	c.r.recorded(q)
	c.r.condense(place{session: q.session, thread: q.thread})
	c.on()
	return c.ask()
}

// concurrent sends two steps of which the second begins before the first is answered.
func (c *talk) concurrent() shownMiss {
	c.r.t.Helper()
	first, second := make(chan struct{}), make(chan struct{})
	before := len(c.r.up.Requests())
	received := func(n int) {
		c.r.t.Helper()
		_, err := c.r.up.Wait(c.r.t.Context(), before+n)
		must(c.r.t, err)
	}
	c.r.cache.keep(false) // it has the first one's prompt only when that is answered
	defer c.r.cache.keep(true)
	one, two := *c, *c
	one.on()
	two.lines = one.lines
	two.on()
	answers := [2]chan requested{make(chan requested, 1), make(chan requested, 1)}
	c.r.hold <- first
	go func() { answers[0] <- one.post() }()
	received(1)
	c.r.hold <- second
	go func() { answers[1] <- two.post() }()
	received(2)
	close(first)
	c.r.recorded(<-answers[0])
	close(second)
	return c.r.recorded(<-answers[1])
}

// TestInjectedCausesOfCacheMissesAreNamed injects causes of cache misses into conversations through the proxy, in all protocols, and reads
// the cause from the request's record.
func TestInjectedCausesOfCacheMissesAreNamed(t *testing.T) {
	for _, protocol := range []string{"chat", "responses", "messages", "gemini"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			r := startMisses(t)
			for i, in := range injected {
				if len(in.protocols) > 0 && !slices.Contains(in.protocols, protocol) {
					continue
				}
				got := in.do(r.begin(protocol, fmt.Sprintf("%s-%d", strings.ReplaceAll(in.cause, "_", "-"), i)))
				if got.Miss != in.cause || got.SplitAt != in.at || in.at > 0 && got.Split != in.cause {
					t.Errorf("%s at message %d is recorded as %+v", in.cause, in.at, got)
				}
			}
		})
	}
}
