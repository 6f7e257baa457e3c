package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// maxIndexed is how many index entries one script writes together with records, which blocks the server for some milliseconds.
const maxIndexed = 2048

// multiSlot reports whether commits touch several slots, of which a script can use only one.
func (s *Store) multiSlot() bool { return s.options.Cluster || s.crossSlot.Load() }

// refusedSlots reports whether a server that was not configured as a Cluster refused a script because of its slots. Such a
// server is a proxy in front of a cluster, and gets no such scripts from then on.
func (s *Store) refusedSlots(err error) bool {
	if err != nil && redis.HasErrorPrefix(err, "CROSSSLOT") {
		s.crossSlot.Store(true)
		return true
	}
	return false
}

// Commit implements store.Store. It takes one round trip. In a Cluster, index entries and records of other groups are in other slots and take a
// second one. So do so many entries that one script would block a single server.
func (s *Store) Commit(ctx context.Context, c store.Commit) (store.Result, error) {
	w := writing{s: s, c: &c}
	if !s.multiSlot() && len(c.Entries)+len(c.Drop) <= maxIndexed {
		result, err := w.run(ctx, w.whole())
		if !s.refusedSlots(err) {
			return result, err
		}
	}
	return w.split(ctx)
}

// writing is a commit under way.
type writing struct {
	s *Store
	c *store.Commit
}

// args collects the arguments of a script.
type args struct{ all []any }

func (a *args) add(values ...any) { a.all = append(a.all, values...) }

// numbers adds numbers as one argument, which takes fewer bytes.
func (a *args) numbers(all ...int64) {
	var b []byte
	for _, n := range all {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	a.add(b)
}

func (a *args) fields(fields []store.Field) {
	for _, f := range fields {
		a.add(f.Name, f.Value)
	}
}

// tokenLen is the length of a token, of 5 bits a character. Only the last write to a record is compared with it.
const tokenLen = 16

// counts reports whether a part must not be applied twice.
func counts(p store.Part) bool {
	return len(p.Add)+len(p.Log)+len(p.Listed)+len(p.Named) > 0
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

// script returns a script that commits parts, and puts and deletes index entries if told to.
func (w *writing) script(parts []store.Part, entries []store.Entry, drops []string, prefix string, limit int) script {
	var a args
	var keys, recents []string
	token, anyRecent := "", false
	if slices.ContainsFunc(parts, counts) {
		token = rand.Text()[:tokenLen]
	}
	for _, e := range w.c.Entries {
		anyRecent = anyRecent || e.Recent
		if e.Recent && len(entries) == 0 {
			recents = append(recents, string(e.Key[1:]))
		}
	}
	a.add(token, w.c.Owner, prefix)
	a.numbers(w.s.options.TTL.Milliseconds(), int64(len(parts)), int64(len(entries)), int64(len(drops)), int64(w.c.Most), int64(limit),
		int64(len(w.c.Return)), int64(len(recents)), flag(anyRecent))
	for _, text := range slices.Concat(w.c.Return, recents) {
		a.add(text)
	}
	for i := range parts {
		keys = append(keys, w.part(&a, &parts[i])...)
	}
	a.entries(entries)
	for _, e := range entries {
		keys = append(keys, w.s.keys.entry(e.Key))
	}
	return script{commitScript, append(keys, drops...), a.all}
}

// entries writes the values of index entries, each once, and for each entry a letter (n, r if it is recent, or f if it also keeps the value that it
// has) and the number of its value.
func (a *args) entries(entries []store.Entry) {
	if len(entries) == 0 {
		return
	}
	at := len(a.all)
	a.add(0)
	var list []byte
	seen := map[string]int{}
	for _, e := range entries {
		if seen[e.Value] == 0 {
			a.add(e.Value)
			seen[e.Value] = len(seen) + 1
		}
		letter := byte('n')
		switch {
		case e.First:
			letter = 'f'
		case e.Recent:
			letter = 'r'
		}
		list = strconv.AppendInt(append(list, letter), int64(seen[e.Value]), 10)
	}
	a.all[at] = len(seen)
	a.add(list)
}

// part writes a part, and returns its keys.
func (w *writing) part(a *args, p *store.Part) []string {
	lease, ttl, renew := w.s.lease(), w.s.options.TTL, p.Renew
	switch p.Keep {
	case 0:
	case store.Forever:
		lease, ttl = 0, 0
	default:
		lease, ttl = p.Keep, p.Keep
		if renew == store.WhenDue {
			renew = store.Now
		}
	}
	shape := []int64{
		lease.Milliseconds(), ttl.Milliseconds(), int64(renew), flag(p.Clear), flag(p.Unlock), int64(len(p.If)), int64(len(p.Set)), int64(len(p.New)),
		int64(len(p.Add)), int64(len(p.Log)), int64(len(p.Listed)), int64(len(p.Named)), int64(len(p.Trim)),
	}
	for _, log := range p.Log {
		shape = append(shape, int64(log.Log), int64(len(log.Entries)))
	}
	a.add(p.Key.Logs)
	a.numbers(shape...)
	for _, cond := range p.If {
		value := cond.Value
		if cond.Test == store.Below {
			value = strconv.FormatInt(cond.Limit, 10) + " " + cond.Other
		}
		a.add(string(cond.Test)+cond.Field, value)
	}
	a.fields(p.Set)
	a.fields(p.New)
	for _, n := range p.Add {
		a.add(n.Name, n.N)
	}
	for _, log := range p.Log {
		for _, e := range log.Entries {
			a.add(e)
		}
	}
	a.fields(p.Listed)
	a.fields(p.Named)
	for _, trim := range p.Trim {
		a.add(string(trim.Log), trim.Keep)
	}
	keys := w.s.keys.all(p.Key)
	if p.Unlock {
		keys = append(keys, w.s.keys.lock(p.Key))
	}
	return keys
}

// whole returns the script that does everything at once.
func (w *writing) whole() script {
	prefix := w.s.keys.prefix + string(max(w.c.RecentKind, '-')) + ":"
	return w.script(w.c.Parts, w.c.Entries, w.s.keys.entries(w.c.Drop), prefix, w.c.Most)
}

// run runs a script and parses its reply.
func (w *writing) run(ctx context.Context, c script) (store.Result, error) {
	var result store.Result
	err := w.s.write(ctx, func(ctx context.Context) (err error) {
		result, _, err = w.parse(c.run(ctx, w.s))
		return err
	})
	return result, err
}

// parse returns the result in a reply, and the recent entries to be deleted.
func (w *writing) parse(reply *redis.Cmd) (r store.Result, excess []store.EntryKey, err error) {
	all, err := reply.Slice()
	if err == nil && len(all) < 3 {
		err = checkLen(all, 3)
	}
	if err != nil {
		return r, nil, err
	}
	var renewed int
	if _, err := fmt.Sscan(textOf(all[0]), &r.Failed, &renewed, &r.End); err != nil {
		return r, nil, checkLen(all[:0], 3)
	}
	r.Renewed, r.Applied, r.Fields = renewed == 1, r.OK(), map[string]string{}
	for i, name := range w.c.Return {
		if i+3 < len(all) && textOf(all[i+3]) != "" {
			r.Fields[name] = textOf(all[i+3])
		}
	}
	for list := range strings.SplitSeq(textOf(all[2]), ",") {
		var numbers []int64
		for text := range strings.FieldsSeq(list) {
			n, _ := strconv.ParseInt(text, 10, 64)
			numbers = append(numbers, n)
		}
		r.Sums = append(r.Sums, numbers)
	}
	return r, store.SplitKeys(textOf(all[1]), w.c.RecentKind), nil
}

// textOf returns a value of a reply as text.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// split commits the parts of the first group, and then the rest.
func (w *writing) split(ctx context.Context) (store.Result, error) {
	first := w.c.Parts[0].Key
	n := slices.IndexFunc(w.c.Parts, func(p store.Part) bool { return p.Key.Group != first.Group || p.Key.Kind != first.Kind })
	if n < 0 {
		n = len(w.c.Parts)
	}
	if w.c.Early {
		return w.splitEarly(ctx)
	}
	var result store.Result
	var excess []store.EntryKey
	err := w.s.write(ctx, func(ctx context.Context) (err error) {
		result, excess, err = w.parse(w.script(w.c.Parts[:n], nil, nil, "", w.c.Most).run(ctx, w.s))
		return err
	})
	if err != nil || !result.OK() {
		return result, err
	}
	return w.rest(ctx, result, n, excess)
}

// splitEarly puts the index entries in the same round trip as a record. If its conditions do not hold, they are withdrawn.
func (w *writing) splitEarly(ctx context.Context) (store.Result, error) {
	var reply *redis.Cmd
	err := w.s.pipe(ctx, func(ctx context.Context, pipe redis.Pipeliner, add addScript) {
		reply = add(w.script(w.c.Parts, nil, nil, "", 2*w.c.Most))
		w.put(ctx, pipe)
	})
	if err != nil {
		return store.Result{}, err
	}
	result, excess, err := w.parse(reply)
	switch {
	case err != nil:
		return result, err
	case !result.OK():
		return result, w.withdraw(ctx)
	}
	return result, w.drop(ctx, excess, w.c.Owner)
}

// rest commits the parts from n on, and puts and deletes index entries. If the first record is gone by then, it withdraws the entries.
func (w *writing) rest(ctx context.Context, result store.Result, n int, excess []store.EntryKey) (store.Result, error) {
	drops, others := slices.Concat(excess, w.c.Drop), w.c.Parts[n:]
	if len(drops)+len(others)+len(w.c.Entries) == 0 {
		return result, nil
	}
	var replies []*redis.Cmd
	var while *redis.StringCmd
	err := w.s.pipe(ctx, func(ctx context.Context, pipe redis.Pipeliner, add addScript) {
		w.put(ctx, pipe)
		w.addDrops(add, drops, w.c.Owner)
		replies = replies[:0]
		for i := range others {
			if result.Renewed && others[i].Renew == store.WhenDue {
				others[i].Renew = store.Now
			}
			only := writing{w.s, &store.Commit{Parts: others[i : i+1]}}
			replies = append(replies, add(only.script(only.c.Parts, nil, nil, "", 0)))
		}
		// Read last: if the record exists now, a deletion that comes later finds everything above.
		if w.c.While.Field != "" {
			while = pipe.HGet(ctx, w.s.keys.record(w.c.Parts[0].Key), w.c.While.Field)
		}
	})
	if err != nil {
		return result, err
	}
	for i, reply := range replies {
		other, _, err := w.parse(reply)
		if err != nil {
			return result, err
		}
		if !other.OK() && result.OK() {
			result.Failed = n + i
		}
	}
	if while != nil && while.Val() != w.c.While.Value {
		result.Failed = 0
	}
	if result.Failed == 0 || result.Failed > 0 && w.c.Parts[result.Failed].Guards {
		return result, w.withdraw(ctx)
	}
	return result, nil
}

// put adds commands to a pipeline that put the index entries.
func (w *writing) put(ctx context.Context, pipe redis.Pipeliner) {
	for _, e := range w.c.Entries {
		options := redis.SetArgs{TTL: w.s.options.TTL}
		if e.First {
			options.Mode = "NX"
		}
		pipe.SetArgs(ctx, w.s.keys.entry(e.Key), e.Value, options)
	}
}

// addDrops adds scripts to a pipeline that delete index entries whose values begin with owner.
func (w *writing) addDrops(add addScript, drops []store.EntryKey, owner string) {
	for _, key := range drops {
		only := writing{w.s, &store.Commit{Owner: owner}}
		add(only.script(nil, nil, []string{w.s.keys.entry(key)}, "", 0))
	}
}

// drop deletes index entries, of which there are usually none.
func (w *writing) drop(ctx context.Context, drops []store.EntryKey, owner string) error {
	if len(drops) == 0 {
		return nil
	}
	return w.s.pipe(ctx, func(_ context.Context, _ redis.Pipeliner, add addScript) { w.addDrops(add, drops, owner) })
}

// withdraw deletes the index entries that were put, unless they have another value by now.
func (w *writing) withdraw(ctx context.Context) error {
	if len(w.c.Entries) == 0 {
		return nil
	}
	return w.s.pipe(ctx, func(_ context.Context, _ redis.Pipeliner, add addScript) {
		for _, e := range w.c.Entries {
			w.addDrops(add, []store.EntryKey{e.Key}, e.Value)
		}
	})
}

// addScript adds a script to a pipeline.
type addScript func(script) *redis.Cmd

// pipe runs the writing commands and scripts that fill adds to a pipeline in one round trip. Scripts are sent by their
// hashes. If a server does not know one of them, pipe sends everything again with the scripts' texts, which does no harm.
func (s *Store) pipe(ctx context.Context, fill func(context.Context, redis.Pipeliner, addScript)) error {
	send := func(eval func(*redis.Script, context.Context, redis.Scripter, []string, ...any) *redis.Cmd) error {
		return s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) {
			fill(ctx, pipe, func(c script) *redis.Cmd { return eval(redis.NewScript(c.text), ctx, pipe, c.keys, c.args...) })
		})
	}
	err := send((*redis.Script).EvalSha)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		err = send((*redis.Script).Eval)
	}
	return err
}

// Late implements store.Store.
func (s *Store) Late() time.Duration {
	if !s.multiSlot() {
		return 0
	}
	return s.lateWrites
}
