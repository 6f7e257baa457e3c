package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Cell is one experiment of the grid: the same requests to each target, block by block.
type Cell struct {
	Kind  Kind `json:"kind"`
	Size  int  `json:"size"` // of the body, in bytes
	Conns int  `json:"conns"`
	API   API  `json:"api,omitempty"`
}

// Name is a cell's name, for people.
func (c Cell) Name() string {
	name := fmt.Sprintf("%s, %s, %d connections", c.Kind, sizeName(c.Size), c.Conns)
	if c.API != "" {
		name += ", " + string(c.API)
	}
	return name
}

// sizeName writes a size of a body.
func sizeName(n int) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%g MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%g KB", float64(n)/1e3)
}

// Sizes of the bodies, in bytes.
func sizes() []int { return []int{10_000, 100_000, 1_000_000, 4_000_000} }

// cells are the experiments of a run.
func (o *Options) cells() []Cell {
	if o.Tiny {
		return []Cell{
			{Known, 10_000, 1, ""}, {Known, 10_000, 2, ""}, {FirstSeen, 10_000, 1, ""}, {Known, 10_000, 1, Messages}, {FirstSeen, 10_000, 1, Responses},
		}
	}
	var out []Cell
	for _, size := range sizes() {
		out = append(out, Cell{Known, size, 1, ""}, Cell{FirstSeen, size, 1, ""}, Cell{Known, size, cpuConns, ""})
	}
	for _, size := range []int{100_000, 1_000_000} {
		for _, api := range []API{Messages, Responses} {
			out = append(out, Cell{Known, size, 1, api}, Cell{FirstSeen, size, 1, api})
		}
	}
	return out
}

// effort is how much is measured in a cell.
type effort struct {
	Blocks   int
	Requests int // of each connection, in each block
	Steps    int // of a session before another one takes its place
}

func (o *Options) effort(c Cell) effort {
	e := map[int]effort{10_000: {8, 150, 3}, 100_000: {8, 60, 8}, 1_000_000: {8, 16, 24}, 4_000_000: {6, 6, 24}}[c.Size]
	switch {
	case o.Tiny:
		return effort{2, 4, 3}
	case o.Quick:
		e.Blocks, e.Requests = 4, max(e.Requests/3, 2)
	}
	if c.Kind == FirstSeen {
		e.Requests = max(e.Requests/3, 2)
	}
	if c.Conns > 1 {
		e.Requests = max(2*e.Requests/c.Conns, 2)
	}
	return e
}

// CellResult is what came of a cell.
type CellResult struct {
	Cell
	Blocks  int            `json:"blocks"`
	Targets []TargetResult `json:"targets"`
}

// TargetResult is one target's part of a cell.
type TargetResult struct {
	Name     string        `json:"name"`
	Requests int           `json:"requests"`
	P50      time.Duration `json:"p50"`       // the middle of the blocks'
	P99      time.Duration `json:"p99"`       // over all blocks
	Ratio    Spread        `json:"ratio"`     // p50 over the bare proxy's, block by block
	CPU      time.Duration `json:"cpu"`       // of a request
	CPURatio Spread        `json:"cpu_ratio"` // over the bare proxy's, block by block
	OverChat Spread        `json:"over_chat"` // p50 over that of Chat Completions, block by block; of cells in another protocol
	Rate     float64       `json:"rate"`      // requests a second
	Sent     float64       `json:"sent"`      // bytes of a body
	Upstream float64       `json:"upstream"`  // bytes of a body that arrived upstream
	RSS      int64         `json:"rss"`       // bytes, after the cell
	Peak     int64         `json:"peak"`      // bytes, in the cell
	Strange  int           `json:"strange"`   // requests forwarded without being recognised, the store being late
}

// measureCells runs the grid.
func (r *rig) measureCells(ctx context.Context) ([]CellResult, error) {
	var out []CellResult
	for _, c := range r.cells() {
		if r.Match != nil && !r.Match(c.Name()) {
			continue
		}
		begun := time.Now()
		result, err := r.measureCell(ctx, c)
		if err != nil {
			return out, fmt.Errorf("%s: %w", c.Name(), err)
		}
		r.log("%s (%.1f s)\n%s", c.Name(), time.Since(begun).Seconds(), result.line())
		out = append(out, result)
	}
	return out, nil
}

// lane is one connection's place in a cell.
type lane struct {
	ctx     context.Context
	feed    *feed
	clients []*client // one to each target, once it is used: who connects and says nothing is cut off
	items   []item    // of this block
	took    []time.Duration
	arrived int
	strange int // requests that were forwarded without being recognised
	err     error
}

// grid is a cell while it is measured.
type grid struct {
	rig    *rig
	cell   Cell
	effort effort
	lanes  []*lane
	blocks [][]block // by target
	chat   *grid     // the same in Chat Completions, measured in turn; nil: this is Chat Completions
}

// block is what one target did in one block.
type block struct {
	took     []time.Duration
	wall     time.Duration
	cpu      time.Duration
	sent     int
	upstream int
	strange  int
}

func (r *rig) measureCell(ctx context.Context, c Cell) (result CellResult, err error) {
	g := r.newGrid(ctx, c)
	grids := []*grid{g}
	if c.API != "" {
		c.API = ""
		g.chat = r.newGrid(ctx, c)
		grids = append(grids, g.chat)
	}
	defer func() {
		for _, g := range grids {
			g.close()
		}
	}()
	for _, t := range r.targets {
		t.forgetPeak()
	}
	for n := range g.effort.Blocks + 1 { // the first one warms up
		if err := r.block(ctx, grids, n); err != nil {
			return result, err
		}
	}
	result = g.result()
	return result, errors.Join(result.recognised(), r.mock.Expected.check())
}

func (r *rig) newGrid(ctx context.Context, c Cell) *grid {
	g := &grid{rig: r, cell: c, effort: r.effort(c), blocks: make([][]block, len(r.targets))}
	template := NewHistory(Plan{Size: c.Size, Steps: g.effort.Steps, API: c.API})
	for range c.Conns {
		l := &lane{ctx: ctx, clients: make([]*client, len(r.targets)), feed: &feed{rig: r, kind: c.Kind, template: template}}
		g.lanes = append(g.lanes, l)
	}
	return g
}

// recognised is an error if a target did not do its work: a tenth of its requests, or one of a few, may find its store late.
func (c *CellResult) recognised() error {
	for _, t := range c.Targets {
		if t.Strange > 1 && 10*t.Strange > t.Requests {
			return fmt.Errorf("%s: %d of %d requests were forwarded without being recognised", t.Name, t.Strange, t.Requests)
		}
	}
	return nil
}

func (g *grid) close() {
	for _, l := range g.lanes {
		for _, c := range l.clients {
			if c != nil {
				c.close()
			}
		}
	}
}

// block makes the same requests of each target, in an order that changes from block to block, and of one target those of all grids, which
// take turns in being first.
func (r *rig) block(ctx context.Context, grids []*grid, n int) error {
	for _, g := range grids {
		g.fill()
	}
	for i := range r.targets {
		at := (i + n) % len(r.targets)
		for first := range grids {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := grids[(first+n)%len(grids)].measure(at, n > 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill decides on a block's requests.
func (g *grid) fill() {
	for _, l := range g.lanes {
		l.items = l.items[:0]
		for range g.effort.Requests {
			l.items = append(l.items, l.feed.next())
		}
	}
}

// measure makes a block's requests of a target.
func (g *grid) measure(at int, counts bool) error {
	if err := g.prime(at); err != nil {
		return err
	}
	b, err := g.run(at)
	if err == nil && counts {
		g.blocks[at] = append(g.blocks[at], b)
	}
	return err
}

// each runs work for all connections at once.
func (g *grid) each(work func(*lane) error) error {
	var running sync.WaitGroup
	for _, l := range g.lanes {
		running.Go(func() { l.err = work(l) })
	}
	running.Wait()
	var errs []error
	for _, l := range g.lanes {
		errs = append(errs, l.err)
	}
	return errors.Join(errs...)
}

// prime makes the block's sessions known to the target.
func (g *grid) prime(at int) error {
	t := g.rig.targets[at]
	if !t.stateful() {
		return nil
	}
	return fewAtATime(4, len(g.lanes), func(n int) error {
		l := g.lanes[n]
		if err := l.connect(at, t); err != nil {
			return err
		}
		for _, i := range l.items {
			if !i.prime {
				continue
			}
			if err := l.feed.prime(l.clients[at], t, i.history); err != nil {
				return err
			}
		}
		return nil
	})
}

// run makes the block's requests of a target and measures them.
func (g *grid) run(at int) (b block, err error) {
	t := g.rig.targets[at]
	cpu, begun := t.cpu(), time.Now()
	err = g.each(func(l *lane) error { return l.run(at, t) })
	b.wall, b.cpu = time.Since(begun), t.cpu()-cpu
	if err != nil {
		return b, err
	}
	for _, l := range g.lanes {
		b.took = append(b.took, l.took...)
		b.upstream += l.arrived
		b.strange += l.strange
		for _, i := range l.items {
			body := i.history.Step(i.step, false)
			b.sent += body.Len()
		}
	}
	return b, nil
}

// connect makes the lane's connection to a target, if there is none yet.
func (l *lane) connect(at int, t *Target) (err error) {
	if l.clients[at] == nil {
		if l.clients[at], err = dial(l.ctx, t.Addr); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return nil
}

func (l *lane) run(at int, t *Target) error {
	if err := l.connect(at, t); err != nil {
		return err
	}
	l.took, l.arrived, l.strange = l.took[:0], 0, 0
	for _, i := range l.items {
		a, arrived, err := l.feed.rig.ask(l.clients[at], l.feed.request(t, i))
		if err != nil {
			return err
		}
		if t.stateful() && a.Thread == "" {
			l.strange++
		}
		l.took = append(l.took, a.Took)
		l.arrived += arrived
	}
	return nil
}

func (g *grid) result() CellResult {
	out := CellResult{Cell: g.cell, Blocks: g.effort.Blocks}
	for at, t := range g.rig.targets {
		out.Targets = append(out.Targets, g.sum(at, t))
	}
	return out
}

// sum makes a target's figures from its blocks.
func (g *grid) sum(at int, t *Target) TargetResult {
	out := TargetResult{Name: t.Name}
	var all, p50s []time.Duration
	var ratios, cpus, overs []float64
	var total block
	for n, b := range g.blocks[at] {
		bare := g.blocks[0][n]
		p50 := quantile(b.took, 0.5)
		all, p50s = append(all, b.took...), append(p50s, p50)
		ratios = append(ratios, float64(p50)/float64(quantile(bare.took, 0.5)))
		if g.chat != nil {
			overs = append(overs, float64(p50)/float64(quantile(g.chat.blocks[at][n].took, 0.5)))
		}
		if bare.cpu > 0 {
			cpus = append(cpus, float64(b.cpu)/float64(bare.cpu))
		}
		total.wall, total.cpu, total.sent, total.upstream = total.wall+b.wall, total.cpu+b.cpu, total.sent+b.sent, total.upstream+b.upstream
		out.Strange += b.strange
	}
	n := float64(max(len(all), 1))
	out.Requests, out.P50, out.P99 = len(all), quantile(p50s, 0.5), quantile(all, 0.99)
	out.Ratio, out.CPURatio, out.OverChat, out.CPU = spread(ratios), spread(cpus), spread(overs), time.Duration(float64(total.cpu)/n)
	out.Rate, out.Sent, out.Upstream = n/max(total.wall.Seconds(), 1e-9), float64(total.sent)/n, float64(total.upstream)/n
	out.RSS, out.Peak = t.memory()
	return out
}

// find gives a target's part of a cell.
func (c *CellResult) find(name string) (TargetResult, bool) {
	i := slices.IndexFunc(c.Targets, func(t TargetResult) bool { return t.Name == name })
	if i < 0 {
		return TargetResult{}, false
	}
	return c.Targets[i], true
}

// line tells the result in short.
func (c *CellResult) line() string {
	out := ""
	for _, t := range c.Targets {
		out += fmt.Sprintf("  %-16s p50 %9s  p99 %9s  ratio %5.2f [%.2f, %.2f]  cpu %9s (%.2f)  rss %4d MB\n", t.Name,
			t.P50.Round(time.Microsecond), t.P99.Round(time.Microsecond), t.Ratio.Median, t.Ratio.Low, t.Ratio.High,
			t.CPU.Round(time.Microsecond), t.CPURatio.Median, t.RSS>>20)
	}
	return out
}
