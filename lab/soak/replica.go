package soak

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/process"
	"github.com/dewpoint-proxy/dewpoint/lab/servers"
)

// patience bounds every wait for something that should come at once. Only a defect uses it up.
const patience = 60 * time.Second

// replica is one run of the binary.
type replica struct {
	addr, admin string
	run         *process.Process
	doomed      atomic.Bool // it is being killed, or was: what breaks on it breaks for that
	metrics     map[string]float64
}

// fleet is the replicas, each in its slot, dead or alive.
type fleet struct {
	binary, config string
	tally          *tally
	client         http.Client

	mu       sync.Mutex // of all that follows, and of the replicas' metrics, as last read
	slots    []*replica
	all      []*replica // that ever ran
	degraded time.Duration
}

// launch starts a replica in a slot, and returns when it serves.
func (f *fleet) launch(ctx context.Context, slot int) error {
	run, serving, err := servers.Serve(ctx, f.binary, "serve", "--config", f.config)
	if err != nil {
		return fmt.Errorf("start replica: %w", err)
	}
	r := &replica{run: run, addr: serving.Listen, admin: serving.Admin}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all, f.slots[slot] = append(f.all, r), r
	return nil
}

// kill ends a slot's replica as a crash would.
func (f *fleet) kill(slot int) {
	r := f.at(slot)
	r.doomed.Store(true)
	r.run.Kill()
}

// end asks a slot's replica to end, and waits for it. It may have ended before.
func (f *fleet) end(slot int) error {
	r := f.at(slot)
	r.doomed.Store(true)
	if err := servers.Stop(r.run); err != nil {
		return fmt.Errorf("end replica: %w", err)
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
	for _, r := range f.all {
		select {
		case <-r.run.Ended:
			if log := r.run.Log.String(); !r.doomed.Load() {
				f.tally.violate("a replica ends only when killed", r.addr, "%v:\n%s", r.run.Command.ProcessState, log[max(0, len(log)-longestDetail):])
			}
		default:
		}
		r.doomed.Store(true)
		r.run.Kill()
		if word := r.run.Log.Defect(); word != "" {
			_, after, _ := strings.Cut(r.run.Log.String(), word)
			f.tally.violate("no panic, no data race", r.addr, "%s", word+after)
		}
	}
}

// sampling is how often the replicas' metrics are read.
const sampling = 250 * time.Millisecond

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
		f.mu.Lock()
		if r.metrics = metrics; metrics["dewpoint_store_degraded"] > 0 {
			f.degraded += sampling
		}
		f.mu.Unlock()
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
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		line := lines.Text()
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "{")
		if n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64); err == nil {
			sums[name] += n // of comments under "#"
		}
	}
	return sums, lines.Err()
}

// total adds up one metric of all that ever ran, as last read.
func (f *fleet) total(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	sum := 0.0
	for _, r := range f.all {
		sum += r.metrics[name]
	}
	return int(sum)
}
