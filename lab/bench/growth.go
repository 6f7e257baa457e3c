package bench

import (
	"context"
	"fmt"
	"time"
)

// Growth is what a session costs while it grows.
type Growth struct {
	Points []GrowthPoint `json:"points"`
	// Whole is how a step's p50 grows with the history: milliseconds over megabytes. Added is the part over the bare proxy.
	Whole map[string]Line `json:"whole"`
	Added map[string]Line `json:"added"`
	Cold  []ColdStep      `json:"cold"`
}

// GrowthPoint is a few steps at one length.
type GrowthPoint struct {
	Messages int                      `json:"messages"`
	Bytes    int                      `json:"bytes"`
	P50      map[string]time.Duration `json:"p50"`
	Commands float64                  `json:"commands"` // to Redis, of one step
	In       float64                  `json:"in"`       // bytes to Redis, of one step
	Out      float64                  `json:"out"`      // bytes from Redis, of one step
	Disk     float64                  `json:"disk"`     // bytes that the embedded store wrote, of one step
}

// ColdStep is the first request that a fresh replica gets of a long session that another one knows.
type ColdStep struct {
	Messages int           `json:"messages"`
	Bytes    int           `json:"bytes"`
	Took     time.Duration `json:"took"`
	Next     time.Duration `json:"next"` // the step after it
	Commands float64       `json:"commands"`
	In       float64       `json:"in"`
	Out      float64       `json:"out"`
}

type growthEffort struct {
	messages, bytes, points, repeats, colds int
}

func (o *Options) growthEffort() growthEffort {
	switch {
	case o.Tiny:
		return growthEffort{60, 60_000, 2, 2, 1}
	case o.Quick:
		return growthEffort{1000, 1_600_000, 6, 4, 1}
	}
	return growthEffort{5000, 8_000_000, 25, 8, 3}
}

// growing is a session while it grows.
type growing struct {
	rig     *rig
	effort  growthEffort
	history *History
	clients []*client // one to each target
	idle    traffic   // that looking at Redis makes itself
}

func (r *rig) measureGrowth(ctx context.Context) (*Growth, error) {
	e := r.growthEffort()
	g := &growing{rig: r, effort: e, history: r.fork(NewLongHistory(e.messages, e.bytes))}
	defer func() {
		for _, c := range g.clients {
			c.close()
		}
	}()
	for _, t := range r.targets {
		c, err := dial(ctx, t.Addr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		g.clients = append(g.clients, c)
	}
	if err := g.calibrate(ctx); err != nil {
		return nil, err
	}
	out := &Growth{}
	for i := range e.points {
		n := (i + 1) * e.messages / e.points / stepMessages * stepMessages
		p, err := g.point(ctx, min(n, e.messages)-stepMessages*e.repeats)
		if err != nil {
			return nil, err
		}
		r.log("%d messages, %d bytes: %v, Redis: %.1f commands, %.0f B in, %.0f B out; disk %.0f B", p.Messages, p.Bytes, p.P50, p.Commands, p.In, p.Out, p.Disk)
		out.Points = append(out.Points, p)
	}
	out.fit(r.targets)
	var err error
	out.Cold, err = g.colds(ctx)
	r.log("cold replica: %+v", out.Cold)
	return out, err
}

// calibrate finds out what looking at Redis costs Redis.
func (g *growing) calibrate(ctx context.Context) error {
	first, err := g.traffic(ctx)
	if err != nil {
		return err
	}
	second, err := g.traffic(ctx)
	g.idle = second.minus(first)
	return err
}

func (g *growing) traffic(ctx context.Context) (traffic, error) {
	if g.rig.redis == nil {
		return traffic{}, nil
	}
	return g.rig.redis.traffic(ctx)
}

// point brings the session to so many messages, and measures a few steps from there. The steps of the targets alternate.
func (g *growing) point(ctx context.Context, messages int) (GrowthPoint, error) {
	for i, t := range g.rig.targets {
		if !t.stateful() {
			continue
		}
		if _, err := g.ask(i, messages); err != nil {
			return GrowthPoint{}, err
		}
	}
	took := make([][]time.Duration, len(g.rig.targets))
	before, err := g.traffic(ctx)
	if err != nil {
		return GrowthPoint{}, err
	}
	disk := g.disk()
	for n := range g.effort.repeats {
		for i := range g.rig.targets {
			at := (i + n) % len(g.rig.targets)
			a, err := g.ask(at, messages+stepMessages*(n+1))
			if err != nil {
				return GrowthPoint{}, err
			}
			took[at] = append(took[at], a.Took)
		}
	}
	after, err := g.traffic(ctx)
	if err != nil {
		return GrowthPoint{}, err
	}
	n := float64(g.effort.repeats)
	used := after.minus(before).minus(g.idle)
	last := g.history.Body(messages+stepMessages*g.effort.repeats, false)
	p := GrowthPoint{
		Messages: messages + stepMessages*g.effort.repeats, Bytes: last.Len(), P50: map[string]time.Duration{},
		Commands: used.Commands / n, In: used.In / n, Out: used.Out / n, Disk: float64(g.disk()-disk) / n,
	}
	for at, t := range g.rig.targets {
		p.P50[t.Name] = quantile(took[at], 0.5)
	}
	return p, nil
}

func (g *growing) ask(at, messages int) (*answer, error) {
	a, _, err := g.rig.ask(g.clients[at], &request{call: call{Target: g.rig.targets[at], Body: g.history.Body(messages, false)}})
	if err != nil {
		return nil, fmt.Errorf("%d messages: %w", messages, err)
	}
	return a, nil
}

func (g *growing) disk() int64 {
	if t := g.rig.target(nameEmbedded); t != nil {
		return diskWrites(t.proc.pids[0])
	}
	return 0
}

// fit draws lines through the points: a step's time, and what is added to the bare proxy's, over bytes.
func (g *Growth) fit(targets []*Target) {
	g.Whole, g.Added = map[string]Line{}, map[string]Line{}
	for _, t := range targets {
		var xs, whole, added []float64
		for _, p := range g.Points {
			xs = append(xs, float64(p.Bytes)/1e6)
			whole = append(whole, milliseconds(p.P50[t.Name]))
			added = append(added, milliseconds(p.P50[t.Name]-p.P50[targets[0].Name]))
		}
		g.Whole[t.Name], g.Added[t.Name] = fit(xs, whole), fit(xs, added)
	}
}

// colds shows the session to fresh replicas over the same Redis.
func (g *growing) colds(ctx context.Context) ([]ColdStep, error) {
	if g.rig.redis == nil {
		return nil, nil
	}
	var out []ColdStep
	for range g.effort.colds {
		c, err := g.cold(ctx)
		if err != nil {
			return out, fmt.Errorf("cold replica: %w", err)
		}
		out = append(out, c)
	}
	return out, nil
}

// cold starts a replica, warms it up with another session, and shows it the long one.
func (g *growing) cold(ctx context.Context) (step ColdStep, err error) {
	t, err := g.rig.dewpoint(setting{Name: "cold replica", Redis: g.rig.redis.addr})
	if err != nil {
		return step, err
	}
	defer func() { err = closed(err, t) }()
	c, err := dial(ctx, t.Addr)
	if err != nil {
		return step, err
	}
	defer c.close()
	if err := g.rig.begin(c, t, g.rig.fork(NewHistory(Plan{Size: 10_000}))); err != nil {
		return step, err
	}
	before, err := g.traffic(ctx)
	if err != nil {
		return step, err
	}
	body := g.history.Body(g.history.Messages()-stepMessages, false)
	a, _, err := g.rig.ask(c, &request{call: call{Target: t, Body: body}})
	if err != nil {
		return step, err
	}
	step = ColdStep{Messages: g.history.Messages() - stepMessages, Bytes: body.Len(), Took: a.Took}
	after, err := g.traffic(ctx)
	if err != nil {
		return step, err
	}
	used := after.minus(before).minus(g.idle)
	step.Commands, step.In, step.Out = used.Commands, used.In, used.Out
	if a, _, err = g.rig.ask(c, &request{call: call{Target: t, Body: g.history.Body(g.history.Messages(), false)}}); err == nil {
		step.Next = a.Took
	}
	return step, err
}
