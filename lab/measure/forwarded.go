package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/process"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// forwardedConfigs are the condensers that runs are played under, by name and as the configuration file has them.
func forwardedConfigs() [][2]string {
	return [][2]string{
		{"noop", `{type: noop}`},
		{"events", `{type: llm, llm_config: cheap, max_size: 40}`},
		{"tokens", `{type: structured_summary, llm_config: cheap, max_tokens: 12000}`},
		{"forgetting", `{type: amortized_forgetting, max_size: 30}`},
		{"pipeline", `{type: pipeline, condensers: [{type: tool_output_trim, max_event_length: 2000},
  {type: observation_masking, attention_window: 20}, {type: llm, llm_config: cheap, max_size: 60}]}`},
	}
}

// fixedSummary is the whole prompt that the stand-in for a summariser sees: what it answers does not depend on how the binary
// under test asks.
const fixedSummary = `{"role": "user", "content": "USER_CONTEXT: the goals of the user.\n\nCOMPLETED: the first steps.\n\n` +
	`PENDING: the next steps.\n\nCURRENT_STATE: work goes on."}`

// sample is one input of the measurement: a recorded run, or a folder of captured requests.
type sample struct {
	name string
	play func(ctx context.Context, url string, up *fakeupstream.Server, each func()) error
}

// measureForwarded prints a SHA-256 of what a binary forwards, for each run or capture and configuration. Equal lines of two
// binaries mean byte-identical bodies in the same order.
func measureForwarded(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("forwarded", flag.ContinueOnError)
	binary := fs.String("dewpoint", "bin/dewpoint", "the binary to measure")
	every := fs.Int("every", 1, "take only every so many of the runs and captures")
	if err := fs.Parse(args); err != nil {
		return err
	}
	samples, err := readSamples(fs.Args())
	if err != nil {
		return err
	}
	if *binary, err = filepath.Abs(*binary); err != nil {
		return fmt.Errorf("find the binary: %w", err)
	}
	var cells []*forwardedCell
	for i := 0; i < len(samples); i += max(*every, 1) {
		for _, c := range forwardedConfigs() {
			cells = append(cells, &forwardedCell{binary: *binary, sample: samples[i], config: c})
		}
	}
	runCells(ctx, cells)
	var failed []error
	for _, c := range cells {
		fmt.Fprintf(out, "%s  %4d  %-10s  %s\n", c.sum, c.bodies, c.config[0], c.sample.name)
		failed = append(failed, c.err)
	}
	return errors.Join(failed...)
}

// runCells runs all cells, as many at a time as there are processors.
func runCells(ctx context.Context, cells []*forwardedCell) {
	next := make(chan *forwardedCell, len(cells))
	for _, c := range cells {
		next <- c
	}
	close(next)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for c := range next {
				if err := c.run(ctx); err != nil {
					c.err = fmt.Errorf("%s, %s: %w", c.sample.name, c.config[0], err)
				}
			}
		})
	}
	workers.Wait()
}

// forwardedCell is one sample under one configuration, with a process, an upstream and a store of its own.
type forwardedCell struct {
	binary string
	sample sample
	config [2]string

	sum    string
	bodies int
	err    error
}

func (c *forwardedCell) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "dewpoint-forwarded-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	up := fakeupstream.New(fakeupstream.Options{
		Keep: kept, SummariserModels: []string{replay.Summariser}, Summarise: summariseFixed,
	})
	if err := up.Start(); err != nil {
		return err
	}
	defer up.Close()
	proxy, url, err := c.serve(ctx, dir, up.URL())
	if err != nil {
		return err
	}
	defer proxy.Kill()
	digest := forwardedDigest{up: up, hash: sha256.New()}
	err = c.sample.play(ctx, url, up, digest.look)
	digest.look()
	c.sum, c.bodies = fmt.Sprintf("%x", digest.hash.Sum(nil)), digest.bodies
	return err
}

// serve starts the binary.
func (c *forwardedCell) serve(ctx context.Context, dir, upstream string) (*process.Process, string, error) {
	file := filepath.Join(dir, "dewpoint.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\nupstream: {base_url: %q}\n"+
		"store: {type: embedded, path: %q, secret: \"a fixed secret of this measurement\"}\nllms: {cheap: {model: %s}}\ncondenser: %s\n",
		upstream+"/v1", filepath.Join(dir, "forwarded.db"), replay.Summariser, c.config[1])
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, "", err
	}
	proxy, err := process.Start(c.binary, "--config", file)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	serving, err := proxy.Await(ctx, "serving")
	if err != nil {
		proxy.Kill()
		return nil, "", err
	}
	return proxy, "http://" + serving.Listen, nil
}

func summariseFixed(req *fakeupstream.Request) fakeupstream.Answer {
	fixed := *req
	fixed.Messages = []json.RawMessage{json.RawMessage(fixedSummary)}
	return fakeupstream.Extract(&fixed)
}

// forwardedDigest hashes the bodies that reach an upstream, in order, a summariser's aside.
type forwardedDigest struct {
	up     *fakeupstream.Server
	hash   hash.Hash
	seen   int // requests looked at
	bodies int
}

// look takes in the requests since the last look.
func (d *forwardedDigest) look() {
	for _, r := range d.up.Requests() {
		if r.Index >= d.seen && !r.Summary && r.Method == "POST" {
			var size [8]byte
			binary.BigEndian.PutUint64(size[:], uint64(len(r.Body)))
			d.hash.Write(size[:])
			d.hash.Write(r.Body)
			d.bodies++
		}
		d.seen = max(d.seen, r.Index+1)
	}
}

// readSamples reads recorded runs (files, and *.json in folders) and captures (folders with a headers.json, and folders of those).
func readSamples(args []string) ([]sample, error) {
	var all []sample
	for _, arg := range args {
		folders, err := captureFolders(arg)
		if err != nil {
			return nil, err
		}
		for _, folder := range folders {
			all = append(all, sample{name: filepath.Base(folder), play: capture(folder).play})
		}
		if len(folders) > 0 {
			continue
		}
		paths, err := replay.Paths([]string{arg})
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			all = append(all, sample{name: strings.TrimSuffix(filepath.Base(path), ".json"), play: recordedRun(path).play})
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no recorded runs or captures; " + usage)
	}
	return all, nil
}

// recordedRun is the file of a run.
type recordedRun string

func (path recordedRun) play(ctx context.Context, url string, up *fakeupstream.Server, each func()) error {
	run, err := replay.Load(string(path))
	if err != nil {
		return err
	}
	_, err = replay.Play(ctx, run, replay.Options{ // its judgement is for 'dewpoint replay'
		URL: func(int) string { return url + "/v1" }, Upstream: up, Model: replay.Model, Each: func(replay.Step) { each() },
	})
	return err
}
