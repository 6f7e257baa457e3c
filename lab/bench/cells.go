package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Cell is one experiment of the grid: the same requests to each target, block by block.
type Cell struct {
	Kind  Kind
	Size  int // of the body, in bytes
	Conns int
	API   API
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

// middleSize is a size of which only known sessions are measured, for the comparison with the relay.
const middleSize = 400_000

// cells are the experiments of a run.
func (o *Options) cells() []Cell {
	if o.Tiny {
		return []Cell{
			{Known, 10_000, 1, ""}, {Known, 10_000, 2, ""}, {FirstSeen, 10_000, 1, ""}, {Known, 10_000, 1, Messages}, {FirstSeen, 10_000, 1, Responses}, {Known, 10_000, 1, Gemini},
		}
	}
	var out []Cell
	for _, size := range sizes() {
		out = append(out, Cell{Known, size, 1, ""}, Cell{FirstSeen, size, 1, ""}, Cell{Known, size, cpuConns, ""})
	}
	out = append(out, Cell{Known, middleSize, 1, ""})
	for _, size := range []int{100_000, 1_000_000} {
		for _, api := range apis() {
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
	full := map[int]effort{10_000: {8, 150, 3}, 100_000: {8, 60, 8}, middleSize: {8, 30, 16}, 1_000_000: {8, 16, 24}, 4_000_000: {6, 6, 24}}[c.Size]
	e := pick(o, effort{2, 4, 3}, effort{4, max(full.Requests/3, 2), full.Steps}, full)
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
	Targets []TargetResult
}

// TargetResult is one target's part of a cell.
type TargetResult struct {
	Name     string
	Requests int
	P50      time.Duration // the middle of the blocks'
	Ratio    Spread        // p50 over the bare proxy's, block by block
	CPU      time.Duration // of a request
	CPURatio Spread        // over the bare proxy's, block by block
	Added    Spread        // what it adds to the p50 of a request without a proxy, over what the relay adds, block by block
	OverChat Spread        // p50 over that of Chat Completions, block by block; of cells in another protocol
	Strange  int           // requests forwarded without being recognised, the store being late
}

// measureCells runs the grid.
func (r *rig) measureCells(ctx context.Context) ([]CellResult, error) {
	var out []CellResult
	for _, c := range r.cells() {
		if !strings.Contains(c.Name(), r.Cell) {
			continue
		}
		begun := time.Now()
		result, err := r.measureCell(ctx, c)
		if err != nil {
			return out, fmt.Errorf("%s: %w", c.Name(), err)
		}
		r.log("%s: %.1f s", c.Name(), time.Since(begun).Seconds())
		out = append(out, result)
	}
	return out, nil
}

// lane is one connection's place in a cell.
type lane struct {
	feed    *feed
	clients []*client // one to each target, once it is used: who connects and says nothing is cut off
	items   []item    // of this block
	took    []time.Duration
	strange int // requests that were forwarded without being recognised
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
	took    []time.Duration
	cpu     time.Duration
	strange int
}

func (r *rig) measureCell(ctx context.Context, c Cell) (result CellResult, err error) {
	g := r.newGrid(c)
	defer g.close()
	grids := []*grid{g}
	if c.API != "" {
		c.API = ""
		g.chat = r.newGrid(c)
		defer g.chat.close()
		grids = append(grids, g.chat)
	}
	for n := range g.effort.Blocks + 1 { // the first one warms up
		if err := r.block(ctx, grids, n); err != nil {
			return result, err
		}
	}
	result = CellResult{Cell: g.cell}
	for at, t := range r.targets {
		result.Targets = append(result.Targets, g.sum(at, t))
	}
	return result, result.recognised()
}

func (r *rig) newGrid(c Cell) *grid {
	g := &grid{rig: r, cell: c, effort: r.effort(c), blocks: make([][]block, len(r.targets))}
	template := NewHistory(Plan{Size: c.Size, Steps: g.effort.Steps, API: c.API})
	for range c.Conns {
		g.lanes = append(g.lanes, &lane{clients: make([]*client, len(r.targets)), feed: &feed{rig: r, kind: c.Kind, template: template}})
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
		for _, l := range g.lanes {
			l.items = l.items[:0]
			for range g.effort.Requests {
				l.items = append(l.items, l.feed.next())
			}
		}
	}
	for i := range r.targets {
		at := (i + n) % len(r.targets)
		for first := range grids {
			if err := grids[(first+n)%len(grids)].measure(ctx, at, n > 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure makes a block's requests of a target, which is shown the beginnings of their sessions before.
func (g *grid) measure(ctx context.Context, at int, counts bool) error {
	t := g.rig.targets[at]
	for _, l := range g.lanes {
		if err := l.prime(ctx, at, t); err != nil {
			return err
		}
	}
	var b block
	var running errgroup.Group
	cpu := t.cpu()
	for _, l := range g.lanes {
		running.Go(func() error { return l.run(at, t) })
	}
	err := running.Wait()
	b.cpu = t.cpu() - cpu
	for _, l := range g.lanes {
		b.took = append(b.took, l.took...)
		b.strange += l.strange
	}
	if counts {
		g.blocks[at] = append(g.blocks[at], b)
	}
	return errors.Join(err, ctx.Err())
}

// prime connects to a target, if that was not done before, and shows it the beginnings of a block's sessions.
func (l *lane) prime(ctx context.Context, at int, t *Target) (err error) {
	if l.clients[at] == nil {
		if l.clients[at], err = dial(ctx, t.Addr, bufferSize); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	for _, i := range l.items {
		if err := l.feed.prime(l.clients[at], t, i); err != nil {
			return err
		}
	}
	return nil
}

// run makes the block's requests of a target.
func (l *lane) run(at int, t *Target) error {
	l.took, l.strange = l.took[:0], 0
	for _, i := range l.items {
		a, err := l.feed.ask(l.clients[at], t, i)
		if err != nil {
			return err
		}
		if t.stateful && !a.has(headerThread) {
			l.strange++
		}
		l.took = append(l.took, a.took)
	}
	return nil
}

// sum makes a target's figures from its blocks.
func (g *grid) sum(at int, t *Target) TargetResult {
	out := TargetResult{Name: t.Name}
	var p50s []time.Duration
	var ratios, added, cpus, overs []float64
	direct, relay := g.named(nameDirect), g.named(nameRelay)
	var cpu time.Duration
	for n, b := range g.blocks[at] {
		bare := g.blocks[0][n]
		p50 := quantile(b.took, 0.5)
		p50s = append(p50s, p50)
		ratios = append(ratios, float64(p50)/float64(quantile(bare.took, 0.5)))
		without := quantile(direct[n].took, 0.5)
		if relays := quantile(relay[n].took, 0.5) - without; relays > 0 {
			added = append(added, float64(p50-without)/float64(relays))
		}
		if g.chat != nil {
			overs = append(overs, float64(p50)/float64(quantile(g.chat.blocks[at][n].took, 0.5)))
		}
		if bare.cpu > 0 {
			cpus = append(cpus, float64(b.cpu)/float64(bare.cpu))
		}
		cpu += b.cpu
		out.Requests += len(b.took)
		out.Strange += b.strange
	}
	out.P50, out.Ratio, out.Added, out.OverChat = quantile(p50s, 0.5), spread(ratios), spread(added), spread(overs)
	out.CPU, out.CPURatio = cpu/time.Duration(max(out.Requests, 1)), spread(cpus)
	return out
}

// named gives the blocks of a target.
func (g *grid) named(name string) []block {
	return g.blocks[slices.IndexFunc(g.rig.targets, func(t *Target) bool { return t.Name == name })]
}

// find gives a target's part of a cell.
func (c *CellResult) find(name string) (TargetResult, bool) {
	i := slices.IndexFunc(c.Targets, func(t TargetResult) bool { return t.Name == name })
	if i < 0 {
		return TargetResult{}, false
	}
	return c.Targets[i], true
}
