package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Tail is what small requests wait while others do something heavy.
type Tail struct {
	Rows []TailRow `json:"rows"`
}

// TailRow is small requests of one size to one target in one situation.
type TailRow struct {
	Situation string        `json:"situation"`
	Name      string        `json:"name"`
	Size      int           `json:"size"`
	Requests  int           `json:"requests"`
	P50       time.Duration `json:"p50"`
	P99       time.Duration `json:"p99"`
	Worst     time.Duration `json:"worst"`
	Limit     time.Duration `json:"limit"` // of p99: three times the budget of p50, by the bare proxy alone; 0: none
}

// Situations.
const (
	situationAlone      = "alone"
	situationNeighbour  = "beside a 4 MB session that loops"
	situationFirstSeen  = "beside first seen histories of 100 KB"
	situationCondensing = "beside sessions that condense (the summary takes 2 s)"
	situationDisk       = "beside a disk that syncs without a pause"
	situationSlowRedis  = "Redis 20 ms away"
	situationStalled    = "Redis stalls for 300 ms each second"
)

const (
	tailFactor   = 3 // p99 over p50's budget
	slowRedis    = 20 * time.Millisecond
	summaryTakes = 2 * time.Second
)

// neighbour does something heavy until its context ends.
type neighbour func(ctx context.Context, t *Target) error

// situation is what small requests are measured in.
type situation struct {
	name    string
	applies func(t *Target) bool
	beside  []neighbour
	lasts   time.Duration // at least
}

func (r *rig) situations() []situation {
	anyone := func(*Target) bool { return true }
	stateful := (*Target).stateful
	return []situation{
		{situationAlone, anyone, nil, 0},
		{situationNeighbour, anyone, []neighbour{r.loops(4_000_000, Known)}, 0},
		{situationFirstSeen, stateful, []neighbour{r.loops(100_000, FirstSeen)}, 0},
		{situationCondensing, stateful, []neighbour{r.condenses, r.condenses, r.condenses, r.condenses}, 2 * summaryTakes},
		{situationDisk, func(t *Target) bool { return t.Name == nameEmbedded }, []neighbour{r.syncs}, 0},
	}
}

func (o *Options) tailEffort() int {
	switch {
	case o.Tiny:
		return 4
	case o.Quick:
		return 60
	}
	return 400
}

func (r *rig) measureTail(ctx context.Context) (*Tail, error) {
	out := &Tail{}
	r.mock.SlowSummary(summaryTakes)
	if r.Tiny {
		r.mock.SlowSummary(summaryTakes / 100)
	}
	defer r.mock.SlowSummary(0)
	for _, s := range r.situations() {
		for _, t := range r.targets {
			if !s.applies(t) {
				continue
			}
			if err := r.situate(ctx, out, s, t); err != nil {
				return out, fmt.Errorf("%s, %s: %w", s.name, t.Name, err)
			}
		}
	}
	if err := r.slowStore(ctx, out); err != nil {
		return out, err
	}
	out.limit(r.targets[0].Name)
	return out, nil
}

// situate measures a target in a situation.
func (r *rig) situate(ctx context.Context, out *Tail, s situation, t *Target) error {
	aside, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(s.beside))
	var running sync.WaitGroup
	for i, work := range s.beside {
		running.Go(func() { errs[i] = work(aside, t) })
	}
	took, err := r.small(ctx, t, r.tailEffort(), s.lasts)
	cancel()
	running.Wait()
	if err = errors.Join(append(errs, err)...); err != nil {
		return err
	}
	for i, size := range tailSizes() {
		row := TailRow{
			Situation: s.name, Name: t.Name, Size: size, Requests: len(took[i]),
			P50: quantile(took[i], 0.5), P99: quantile(took[i], 0.99), Worst: quantile(took[i], 1),
		}
		r.log("%s, %s, %s: p50 %v, p99 %v, worst %v", row.Situation, row.Name, sizeName(size), row.P50, row.P99, row.Worst)
		out.Rows = append(out.Rows, row)
	}
	return nil
}

func tailSizes() []int { return []int{10_000, 100_000} }

// small makes n small requests of each size over one connection, in turn, and goes on until that has lasted long enough. It
// gives what they took.
func (r *rig) small(ctx context.Context, t *Target, n int, lasts time.Duration) ([][]time.Duration, error) {
	took := make([][]time.Duration, len(tailSizes()))
	c, err := dial(ctx, t.Addr)
	if err != nil {
		return nil, err
	}
	defer c.close()
	var feeds []*feed
	for _, size := range tailSizes() {
		feeds = append(feeds, &feed{rig: r, kind: Known, template: NewHistory(Plan{Size: size, Steps: 6})})
	}
	switch {
	case r.Tiny:
		lasts /= 100
	case r.Quick:
		lasts /= 2
	}
	for end := time.Now().Add(lasts); n > 0 || time.Now().Before(end); n-- {
		for i, f := range feeds {
			d, err := f.once(c, t)
			if err != nil {
				return nil, err
			}
			took[i] = append(took[i], d)
		}
	}
	return took, ctx.Err()
}

// once makes a feed's next request of a target; a session's first one is not timed.
func (f *feed) once(c *client, t *Target) (time.Duration, error) {
	i := f.next()
	if i.prime && t.stateful() {
		if _, _, err := f.rig.ask(c, f.request(t, item{history: i.history})); err != nil {
			return 0, err
		}
	}
	a, _, err := f.rig.ask(c, f.request(t, i))
	if err != nil {
		return 0, err
	}
	return a.Took, nil
}

// loops is a neighbour whose session steps without a pause.
func (r *rig) loops(size int, kind Kind) neighbour {
	if r.Tiny {
		size /= 100
	}
	return func(ctx context.Context, t *Target) error {
		c, err := dial(ctx, t.Addr)
		if err != nil {
			return err
		}
		defer c.close()
		f := &feed{rig: r, kind: kind, template: NewHistory(Plan{Size: size, Steps: 1000})}
		for ctx.Err() == nil {
			if _, err := f.once(c, t); err != nil {
				return err
			}
		}
		return nil
	}
}

// condenses is a neighbour whose sessions are condensed, one after another.
func (r *rig) condenses(ctx context.Context, t *Target) error {
	c, err := dial(ctx, t.Addr)
	if err != nil {
		return err
	}
	defer c.close()
	f := &feed{rig: r, kind: Condensed, template: NewHistory(Plan{Size: 100_000})}
	for ctx.Err() == nil {
		if err := f.prime(c, t, r.fork(f.template)); err != nil {
			return err
		}
	}
	return nil
}

// syncs keeps the disk busy that the embedded store is on.
func (r *rig) syncs(ctx context.Context, _ *Target) (err error) {
	file, err := os.Create(filepath.Join(r.dir, "busy"))
	if err != nil {
		return fmt.Errorf("keep the disk busy: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	block := make([]byte, 1<<20)
	for ctx.Err() == nil {
		if _, err := file.WriteAt(block, 0); err != nil {
			return fmt.Errorf("keep the disk busy: %w", err)
		}
		if err := file.Sync(); err != nil {
			return fmt.Errorf("keep the disk busy: %w", err)
		}
	}
	return nil
}

// slowStore measures a Dewpoint whose Redis is slow.
func (r *rig) slowStore(ctx context.Context, out *Tail) (err error) {
	if r.redis == nil {
		return nil
	}
	d, err := newDelayer(r.redis.addr)
	if err != nil {
		return err
	}
	defer d.close()
	t, err := r.dewpoint(setting{Name: nameRedis, Redis: d.addr()})
	if err != nil {
		return err
	}
	defer func() { err = closed(err, t) }()
	d.delay(slowRedis)
	if err := r.situate(ctx, out, situation{name: situationSlowRedis}, t); err != nil {
		return fmt.Errorf("%s: %w", situationSlowRedis, err)
	}
	d.delay(0)
	stalls := situation{name: situationStalled, beside: []neighbour{d.stalls}, lasts: 4 * time.Second}
	if err := r.situate(ctx, out, stalls, t); err != nil {
		return fmt.Errorf("%s: %w", situationStalled, err)
	}
	return nil
}

// limit gives the rows of Dewpoint their limits.
func (t *Tail) limit(bare string) {
	alone := map[int]time.Duration{}
	for _, row := range t.Rows {
		if row.Situation == situationAlone && row.Name == bare {
			alone[row.Size] = row.P50
		}
	}
	for i := range t.Rows {
		row := &t.Rows[i]
		if budget := budgetOf(Known, row.Name, row.Size); budget > 0 {
			row.Limit = time.Duration(tailFactor * budget * float64(alone[row.Size]))
		}
	}
}
