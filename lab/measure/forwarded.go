package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/lab/servers"
)

// forwardedConfigs are the condensers that runs are played under, by name and as the configuration file has them. Requests wait for
// summaries, so that what is forwarded does not depend on when one is ready.
// kept is how many requests the fake upstream remembers: more than one step makes.
const kept = 64

func forwardedConfigs() [][2]string {
	return [][2]string{
		{"noop", `{type: noop}`},
		{"events", `{type: llm, llm_config: cheap, trigger: limits, max_size: 40, wait: deadline, deadline: 5m, background_at: 0}`},
		{"tokens", `{type: structured_summary, llm_config: cheap, trigger: limits, max_tokens: 12000, wait: deadline, deadline: 5m, background_at: 0}`},
		{"forgetting", `{type: amortized_forgetting, trigger: limits, max_size: 30}`},
		{"pipeline", `{type: pipeline, condensers: [{type: tool_output_trim, max_event_length: 2000},
  {type: observation_masking, attention_window: 20},
  {type: llm, llm_config: cheap, trigger: limits, max_size: 60, wait: deadline, deadline: 5m, background_at: 0}]}`},
	}
}

// fixedSummary is the whole prompt that the stand-in for a summariser sees: what it answers does not depend on how the binary
// under test asks.
const fixedSummary = `{"role": "user", "content": "USER_CONTEXT: the goals of the user.\n\nCOMPLETED: the first steps.\n\n` +
	`PENDING: the next steps.\n\nCURRENT_STATE: work goes on."}`

// measureForwarded prints a SHA-256 of what a binary forwards, for each run or capture and configuration. Equal lines of two binaries mean
// byte-identical bodies in the same order.
func measureForwarded(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("forwarded", flag.ContinueOnError)
	binary := fs.String("dewpoint", "bin/dewpoint", "the binary to measure")
	captures := fs.String("captures", "", "a folder with folders of captured requests")
	if err := fs.Parse(args); err != nil {
		return err
	}
	recorded, err := runs(fs)
	if err != nil && *captures == "" {
		return err
	}
	folders, err := filepath.Glob(filepath.Join(*captures, "*", "headers.json"))
	if err != nil {
		return err
	}
	for _, list := range folders {
		recorded = append(recorded, replay.Run{Name: filepath.Dir(list)}) // a run without messages
	}
	if *binary, err = filepath.Abs(*binary); err != nil {
		return fmt.Errorf("find the binary: %w", err)
	}
	var cells []*forwardedCell
	var running errgroup.Group
	running.SetLimit(runtime.GOMAXPROCS(0))
	for _, run := range recorded {
		for _, config := range forwardedConfigs() {
			c := &forwardedCell{binary: *binary, run: run, config: config}
			cells = append(cells, c)
			running.Go(func() error {
				c.err = c.measure(ctx)
				return nil
			})
		}
	}
	_ = running.Wait() // each cell has its error
	var failed []error
	for _, c := range cells {
		fmt.Fprintf(out, "%s  %4d  %-10s  %s\n", c.sum, c.bodies, c.config[0], c.run.Name)
		if c.err != nil {
			failed = append(failed, fmt.Errorf("%s, %s: %w", c.run.Name, c.config[0], c.err))
		}
	}
	return errors.Join(failed...)
}

// forwardedCell is one run under one configuration, with a process, an upstream and a store of its own.
type forwardedCell struct {
	binary string
	run    replay.Run
	config [2]string

	sum    string
	bodies int
	err    error
}

func (c *forwardedCell) measure(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "dewpoint-forwarded-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	up := fakeupstream.New(fakeupstream.Options{
		Keep: kept, SummariserModels: []string{judge.Summariser}, Summarise: summariseFixed,
	})
	if err := up.Start(); err != nil {
		return err
	}
	defer up.Close()
	file := filepath.Join(dir, "dewpoint.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\nupstream: {base_url: %q}\n"+
		"store: {type: embedded, path: %q, secret: \"a fixed secret of this measurement\"}\nllms: {cheap: {model: %s}}\ncondenser: %s\n",
		up.URL()+"/v1", filepath.Join(dir, "forwarded.db"), judge.Summariser, c.config[1])
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	proxy, serving, err := servers.Serve(ctx, c.binary, "--config", file)
	if err != nil {
		return err
	}
	defer proxy.Kill()
	return c.play(ctx, "http://"+serving.Listen, up)
}

// play plays the run, and hashes the bodies that reach upstream, in order, a summariser's aside.
func (c *forwardedCell) play(ctx context.Context, url string, up *fakeupstream.Server) error {
	hash, seen := sha256.New(), 0
	look := func() { // takes in the requests since the last look
		for _, r := range up.Requests() {
			if r.Index >= seen && !r.Summary && r.Method == "POST" {
				_ = binary.Write(hash, binary.BigEndian, uint64(len(r.Body))) // a hash takes everything
				hash.Write(r.Body)
				c.bodies++
			}
			seen = max(seen, r.Index+1)
		}
	}
	var err error
	if c.run.Messages == nil {
		err = playCapture(ctx, c.run.Name, url, look)
	} else {
		_, err = judge.Play(ctx, c.run, judge.Options{ // its judgement is for the judge command
			URL: func(int) string { return url + "/v1" }, Upstream: up, Model: judge.Model, Each: func(judge.Step) { look() },
		})
	}
	look()
	c.sum = fmt.Sprintf("%x", hash.Sum(nil))
	return err
}

func summariseFixed(req *fakeupstream.Request) fakeupstream.Answer {
	fixed := *req
	fixed.Messages = []json.RawMessage{json.RawMessage(fixedSummary)}
	return fakeupstream.Extract(&fixed)
}
