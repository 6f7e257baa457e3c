package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// runFor starts a client by 'dewpoint run', which is all that points it, and judges what reached upstream and what run printed.
func (t trial) runFor(ctx context.Context, r *report, folder, programs string) error {
	work, err := os.MkdirTemp("", "dewpoint-clients-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	m, err := newModel(r.client)
	if err != nil {
		return err
	}
	upstream := fakeupstream.New(fakeupstream.Options{Reply: m.reply, IsSummary: isSummary, APIKeys: []string{key}})
	defer upstream.Close()
	far, err := startTap(before(upstream))
	if err != nil {
		return err
	}
	defer far.close()
	config, err := configure(work, far.URL)
	if err != nil {
		return err
	}
	c := r.client.byRun(append([]string{t.binary, "run", "--config", config, "--"}, r.client.Run.Program...))
	r.said, err = c.work(ctx, place{work: work, install: folder, programs: programs})
	err = errors.Join(err, ended(ctx, filepath.Join(work, "state.db.lock")))
	r.judgeRun(upstream.Requests(), m.parts)
	if t.traffic != "" {
		err = errors.Join(err, keep(filepath.Join(t.traffic, anchor(r.client.Name)), far.seen()))
	}
	return err
}

// byRun returns the client as a command line starts it, without anything that points it at an address.
func (c client) byRun(program []string) client {
	pointed := func(_, text string) bool { return strings.Contains(text, address) }
	c.Script, c.Program = "", program
	c.Files, c.Environment = maps.Clone(c.Files), maps.Clone(c.Environment)
	maps.DeleteFunc(c.Files, pointed)
	maps.DeleteFunc(c.Environment, pointed)
	c.Files, c.Environment = merged(c.Files, c.Run.Files), merged(c.Environment, c.Run.Environment)
	return c
}

// merged returns both maps as one. The second one's values win.
func merged(first, second map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, first)
	maps.Copy(all, second)
	return all
}

// total is the line that 'dewpoint run' prints at the end.
var total = regexp.MustCompile(`Dewpoint: (\d+) steps, (\d+) condensations?, `)

// judgeRun checks the requests of a run. Nothing listens between client and Dewpoint, so upstream's side and the total are all there is.
func (r *report) judgeRun(requests []fakeupstream.Request, parts map[int]part) {
	longest, shortened := 0, false
	for i := range requests {
		up := &requests[i]
		path, _, _ := strings.Cut(up.Path, "?")
		if up.Refused != nil && modelPaths.MatchString(path) {
			r.problem("upstream refused %s: %v", up.Path, up.Refused)
		}
		if parts[i] == mainLine {
			r.requests++
			shortened = shortened || len(up.Messages) < longest
			longest = max(longest, len(up.Messages))
		}
	}
	if least := max(steps, r.client.Turns); r.requests < least {
		r.problem("%d requests came, not %d", r.requests, least)
	}
	if !shortened {
		r.problem("no request became shorter")
	}
	found := total.FindStringSubmatch(r.said)
	if found == nil {
		r.problem("run printed no total")
		return
	}
	r.condensations, _ = strconv.Atoi(found[2])
	if counted, _ := strconv.Atoi(found[1]); counted < r.requests || r.condensations == 0 {
		r.problem("run printed %s", found[0])
	}
}

// ended waits until the proxy that runs share has ended, whose process number is in the lock of its state file.
func ended(ctx context.Context, lock string) error {
	text, err := os.ReadFile(lock)
	if err != nil {
		return fmt.Errorf("the proxy's lock: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 3 {
		return fmt.Errorf("the proxy's lock has %q", text)
	}
	pid, err := strconv.Atoi(fields[2])
	if err != nil {
		return fmt.Errorf("the proxy's lock: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, working)
	defer cancel()
	for syscall.Kill(pid, 0) == nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d still serves runs", pid)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}
