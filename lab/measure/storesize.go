package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/alicebob/miniredis/v2/proto"

	"github.com/dewpoint-proxy/dewpoint/internal/capacity"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/lab/servers"
)

// sizedCondenser is the condenser that runs are played under. Requests wait for summaries, so that two measurements store the same.
const sizedCondenser = `{type: llm, llm_config: cheap, trigger: limits, max_size: 60, wait: deadline, deadline: 5m, background_at: 0}`

// measureStoreSize plays runs and small chats through the binary over each store, and prints what the store then holds.
func measureStoreSize(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("store-size", flag.ContinueOnError)
	binary := fs.String("dewpoint", "bin/dewpoint", "the binary to measure")
	chats := fs.Int("chats", 200, "small chats to play in addition to the runs")
	content := fs.Bool("content", true, "store.content")
	condenser := fs.String("condenser", sizedCondenser, "the condenser's section of the configuration")
	if err := fs.Parse(args); err != nil {
		return err
	}
	recorded, err := runs(fs)
	if err != nil {
		return err
	}
	if *binary, err = filepath.Abs(*binary); err != nil {
		return fmt.Errorf("find the binary: %w", err)
	}
	for _, part := range []struct {
		name string
		runs []replay.Run
	}{{"recorded runs", recorded}, {"small chats", smallChats(*chats)}} {
		if len(part.runs) == 0 {
			continue
		}
		s := storeSize{binary: *binary, runs: part.runs, kept: *content, condenser: *condenser}
		for i := range s.runs {
			s.count(&s.runs[i])
		}
		fmt.Fprintf(out, "%d %s, %d messages, %.2f KB of content a message\n\n", len(s.runs), part.name, s.messages, s.perMessage(s.content)/1000)
		if err := errors.Join(s.measureRedis(ctx, out), s.measureEmbedded(ctx, out)); err != nil {
			return err
		}
	}
	return nil
}

// smallChats returns chats of ten short messages.
func smallChats(n int) []replay.Run {
	chats := make([]replay.Run, n)
	for i := range chats {
		say := func(role, format string, args ...any) {
			text, _ := json.Marshal(map[string]string{"role": role, "content": fmt.Sprintf(format, args...)}) // always encodes
			chats[i].Messages = append(chats[i].Messages, text)
		}
		say("system", "You help the guests of a hotel. Answer in one or two sentences.")
		for turn := range 5 {
			say("user", "This is guest %d. What about question %d, which concerns room %d and the %dth of the month?", i, turn, 100+7*i+turn, 1+(i+turn)%28)
			say("assistant", "Room %d is free on that day, and costs %d euros with breakfast. Shall I reserve it for guest %d?", 100+7*i+turn, 80+i%40, i)
		}
		chats[i].Name = fmt.Sprintf("chat %d", i)
	}
	return chats
}

// storeSize is a measurement of one set of runs.
type storeSize struct {
	binary string
	runs   []replay.Run
	kept   bool // content is stored

	condenser string

	messages int
	content  int // bytes of the messages as they are sent
}

// count adds the messages of a run's last request.
func (s *storeSize) count(run *replay.Run) {
	calls := run.Calls()
	last := calls[len(calls)-1].Messages
	s.messages += len(last)
	for _, m := range last {
		s.content += len(m)
	}
}

func (s *storeSize) perMessage(n int) float64 { return float64(n) / float64(s.messages) }

func (s *storeSize) measureRedis(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "dewpoint-store-size-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	redis, err := servers.StartRedis(ctx, dir)
	if err != nil {
		return err
	}
	defer redis.Kill()
	empty, err := usedMemory(redis.Addr)
	if err != nil {
		return err
	}
	if err := s.play(ctx, dir, fmt.Sprintf("{type: redis, redis: {addrs: [%q]}, secret: %q, content: %t}", redis.Addr, sizedSecret, s.kept)); err != nil {
		return err
	}
	full, err := usedMemory(redis.Addr)
	if err != nil {
		return err
	}
	kinds, err := census(redis.Addr)
	if err != nil {
		return err
	}
	if err := s.tabulate(out, kinds, full-empty); err != nil {
		return err
	}
	e := s.estimate()
	_, err = fmt.Fprintf(out, "dewpoint size: %.0f bytes and %.3f keys a message, %+.0f%% and %+.0f%%\n\n", e.Bytes/float64(s.messages), e.Keys/float64(s.messages),
		100*(e.Bytes/float64(full-empty)-1), 100*(e.Keys/float64(keysOf(kinds))-1))
	return err
}

// estimate is what 'dewpoint size' says of the runs, as if each had begun on the same day and none had expired.
func (s *storeSize) estimate() (sum capacity.Estimate) {
	for i := range s.runs {
		one := storeSize{}
		one.count(&s.runs[i])
		e := capacity.Redis(capacity.Load{Sessions: 1, Messages: one.messages, Bytes: one.content / one.messages, Days: 1, Content: s.kept})
		for _, p := range e.Parts {
			if p.Name == capacity.Names { // lists of one day, whatever the number of runs
				p.Bytes /= capacity.NameDays
				p.Keys = 0
			}
			sum.Bytes, sum.Keys = sum.Bytes+p.Bytes, sum.Keys+p.Keys
		}
	}
	return sum
}

func keysOf(kinds map[string]kindSize) (n int) {
	for _, k := range kinds {
		n += k.keys
	}
	return n
}

// tabulate prints a line for each kind of key, and one for all, with the growth of the server's memory.
func (s *storeSize) tabulate(out io.Writer, kinds map[string]kindSize, grown int) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "Redis\tkeys\tbytes\tkeys a message\tbytes a message\t")
	all := kindSize{}
	for _, name := range slices.SortedFunc(maps.Keys(kinds), func(a, b string) int { return cmp.Compare(kinds[b].bytes, kinds[a].bytes) }) {
		k := kinds[name]
		all.keys, all.bytes = all.keys+k.keys, all.bytes+k.bytes
		fmt.Fprintf(w, "%s\t%d\t%d\t%.3f\t%.0f\t\n", name, k.keys, k.bytes, s.perMessage(k.keys), s.perMessage(k.bytes))
	}
	fmt.Fprintf(w, "all keys\t%d\t%d\t%.3f\t%.0f\t\n", all.keys, all.bytes, s.perMessage(all.keys), s.perMessage(all.bytes))
	fmt.Fprintf(w, "memory of the server\t\t%d\t\t%.0f\t\n", grown, s.perMessage(grown))
	if err := w.Flush(); err != nil {
		return err
	}
	logs := kinds[logKind]
	_, err := fmt.Fprintf(out, "logs: %.2f bytes a byte of content; all else: %.0f bytes and %.3f keys a message\n\n",
		float64(logs.bytes)/float64(s.content), s.perMessage(all.bytes-logs.bytes), s.perMessage(all.keys-logs.keys))
	return err
}

func (s *storeSize) measureEmbedded(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "dewpoint-store-size-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "state.db")
	if err := s.play(ctx, dir, fmt.Sprintf("{type: embedded, path: %q, secret: %q, content: %t}", file, sizedSecret, s.kept)); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	size := int(info.Size())
	_, err = fmt.Fprintf(out, "embedded: %d bytes, %.0f a message, %.2f a byte of content\n\n", size, s.perMessage(size), float64(size)/float64(s.content))
	return err
}

const sizedSecret = "a fixed secret of this measurement"

// play plays the runs, one after the other, through a process of their own over a store.
func (s *storeSize) play(ctx context.Context, dir, store string) error {
	up := fakeupstream.New(fakeupstream.Options{Keep: kept, SummariserModels: []string{judge.Summariser}, Summarise: summariseFixed})
	if err := up.Start(); err != nil {
		return err
	}
	defer up.Close()
	file := filepath.Join(dir, "dewpoint.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\nupstream: {base_url: %q}\nstore: %s\nllms: {cheap: {model: %s}}\ncondenser: %s\n",
		up.URL()+"/v1", store, judge.Summariser, s.condenser)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	proxy, serving, err := servers.Serve(ctx, s.binary, "--config", file)
	if err != nil {
		return err
	}
	defer proxy.Kill() // it has ended, unless something failed
	for _, run := range s.runs {
		o := judge.Options{URL: func(int) string { return "http://" + serving.Listen + "/v1" }, Upstream: up, Model: judge.Model}
		if _, err := judge.Play(ctx, run, o); err != nil {
			return err
		}
	}
	return servers.Stop(proxy)
}

// logKind is the kind of the keys that hold the content of messages.
const logKind = "logs"

// kindSize is how many keys of a kind there are, and their size.
type kindSize struct{ keys, bytes int }

// censusScript returns the kind, the number and the size of all keys, three values for each kind. The kind of a key is its first letter, and for a log
// what follows the record that it belongs to.
const censusScript = `
local keys, bytes, flat = {}, {}, {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = (string.match(key, '^dp:(%a):') or 'other') .. (string.match(key, '^dp:%a:{[^}]*}(/%a+)') or '')
  keys[kind] = (keys[kind] or 0) + 1
  bytes[kind] = (bytes[kind] or 0) + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', 0)
end
for kind, n in pairs(keys) do
  flat[#flat + 1] = kind
  flat[#flat + 1] = tostring(n)
  flat[#flat + 1] = string.format('%.0f', bytes[kind])
end
return flat
`

// kindNames are the names of kinds in the table.
var kindNames = map[string]string{
	"p": "places", "i": "traces", "t/e": logKind, "t": "thread records", "t/x": "answers", "s": "sessions", "s/u": "threads of sessions", "t/lock": "locks",
}

// census returns how many keys of each kind a server has, and how large they are.
func census(addr string) (map[string]kindSize, error) {
	reply, err := ask(addr, "EVAL", censusScript, "0")
	if err != nil {
		return nil, err
	}
	values, err := proto.ReadStrings(reply)
	if err != nil {
		return nil, fmt.Errorf("census: %w: %s", err, reply)
	}
	kinds := map[string]kindSize{}
	for v := range slices.Chunk(values, 3) {
		n, err := strconv.Atoi(v[1])
		if err != nil {
			return nil, fmt.Errorf("census: %w", err)
		}
		size, err := strconv.Atoi(v[2])
		if err != nil {
			return nil, fmt.Errorf("census: %w", err)
		}
		kinds[cmp.Or(kindNames[v[0]], v[0])] = kindSize{n, size}
	}
	return kinds, nil
}

// usedMemory returns what the data of a server takes, without its buffers.
func usedMemory(addr string) (int, error) {
	reply, err := ask(addr, "INFO", "memory")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(reply) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory_dataset:"); ok {
			return strconv.Atoi(n)
		}
	}
	return 0, errors.New("the server does not say how much memory it uses")
}

func ask(addr string, args ...string) (string, error) {
	c, err := proto.Dial(addr)
	if err != nil {
		return "", err
	}
	reply, err := c.Do(args...)
	return reply, errors.Join(err, c.Close())
}
