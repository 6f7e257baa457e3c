package soak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/process"
)

// patience bounds every wait for something that should come at once. Only a defect uses it up.
const patience = 60 * time.Second

// replica is one run of the binary.
type replica struct {
	addr, admin string
	run         *process.Process
	doomed      atomic.Bool // it is being killed, or was: what breaks on it breaks for that

	mu      sync.Mutex
	metrics map[string]float64 // as last read
}

// fleet is the replicas, each in its slot, dead or alive.
type fleet struct {
	binary, config string
	tally          *tally
	client         http.Client

	mu       sync.Mutex
	slots    []*replica
	all      []*replica // that ever ran
	degraded time.Duration
}

func newFleet(binary, config string, t *tally) *fleet {
	return &fleet{binary: binary, config: config, tally: t, client: http.Client{Timeout: time.Second}}
}

// start starts n replicas.
func (f *fleet) start(ctx context.Context, n int) error {
	f.slots = make([]*replica, n)
	for i := range f.slots {
		if err := f.launch(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// launch starts a replica in a slot, and returns when it serves.
func (f *fleet) launch(ctx context.Context, slot int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	run, err := process.Start(f.binary, "serve", "--config", f.config)
	if err != nil {
		return fmt.Errorf("start replica: %w", err)
	}
	r := &replica{run: run}
	f.mu.Lock()
	f.all = append(f.all, r)
	f.mu.Unlock()
	serving, err := run.Await(ctx, "serving")
	if err != nil {
		return fmt.Errorf("start replica: %w", err)
	}
	r.addr, r.admin = serving.Listen, serving.Admin
	f.mu.Lock()
	f.slots[slot] = r
	f.mu.Unlock()
	return nil
}

// kill ends a slot's replica as a crash would.
func (f *fleet) kill(slot int) {
	r := f.at(slot)
	r.doomed.Store(true)
	r.run.Kill()
}

// end asks a slot's replica to end, and waits for it.
func (f *fleet) end(slot int) error {
	r := f.at(slot)
	r.doomed.Store(true)
	if err := r.run.Command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end replica: %w", err)
	}
	select {
	case <-r.run.Ended:
	case <-time.After(patience):
		return fmt.Errorf("end replica: it does not end:\n%s", r.run.Log)
	}
	if code := r.run.Command.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("end replica: exit code %d:\n%s", code, r.run.Log)
	}
	return nil
}

func (f *fleet) at(slot int) *replica {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slots[slot]
}

func (f *fleet) size() int { return len(f.slots) }

// close kills what still runs, and looks through what all of them wrote.
func (f *fleet) close() {
	f.mu.Lock()
	all := f.all
	f.mu.Unlock()
	for _, r := range all {
		ended := false
		select {
		case <-r.run.Ended:
			ended = true
		default:
		}
		if ended && !r.doomed.Load() {
			f.tally.violate("a replica ends only when killed", r.addr, "%v:\n%s", r.run.Command.ProcessState, tail(r.run.Log.String()))
		}
		r.doomed.Store(true)
		r.run.Kill()
		if word := r.run.Log.Defect(); word != "" {
			f.tally.violate("no panic, no data race", r.addr, "%s", from(r.run.Log.String(), word))
		}
	}
}

func tail(text string) string { return text[max(0, len(text)-longestDetail):] }

// from is the text from a word on.
func from(text, word string) string {
	_, after, _ := strings.Cut(text, word)
	return word + after
}

// sampling is how often the replicas' metrics are read.
const sampling = 250 * time.Millisecond

// watch reads the replicas' metrics now and then, until the context ends.
func (f *fleet) watch(ctx context.Context) {
	tick := time.NewTicker(sampling)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.sample(ctx)
		}
	}
}

// sample reads the metrics of all that live.
func (f *fleet) sample(ctx context.Context) {
	for slot := range f.size() {
		r := f.at(slot)
		if r.doomed.Load() {
			continue
		}
		metrics, err := f.read(ctx, r.admin)
		if err != nil {
			continue // it was killed, or the machine is busy: the next sample will tell
		}
		r.mu.Lock()
		r.metrics = metrics
		r.mu.Unlock()
		if metrics["dewpoint_store_degraded"] > 0 {
			f.mu.Lock()
			f.degraded += sampling
			f.mu.Unlock()
		}
	}
}

// read gives the metrics, those of one name added up.
func (f *fleet) read(ctx context.Context, admin string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer resp.Body.Close()
	sums := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, found := strings.Cut(lines.Text(), " ")
		if at := strings.LastIndexByte(lines.Text(), ' '); found && at > 0 {
			value = lines.Text()[at+1:]
		}
		name, _, _ = strings.Cut(name, "{")
		if n, err := strconv.ParseFloat(value, 64); err == nil && !strings.HasPrefix(name, "#") {
			sums[name] += n
		}
	}
	return sums, nil
}

// total adds up one metric of all that ever ran, as last read.
func (f *fleet) total(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	sum := 0.0
	for _, r := range f.all {
		r.mu.Lock()
		sum += r.metrics[name]
		r.mu.Unlock()
	}
	return int(sum)
}
