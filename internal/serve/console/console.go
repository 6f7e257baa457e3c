// Package console tells people at a terminal what the proxy does: where it serves, a line for each request, what goes wrong, and at the end what
// was saved. It computes no figures of its own: they come from the records of requests that the metrics and the log use as well.
package console

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// Console writes to a screen. Until Start it holds back what it would write. It is safe for concurrent use.
type Console struct {
	screen   terminal.Screen
	requests bool // a line for each request
	now      func() time.Time

	mu      sync.Mutex
	started bool
	held    []string
	said    map[string]time.Time // warnings, and when they were said
	all     Tally
	today   Tally
	day     string // of today
}

var _ observe.Watcher = (*Console)(nil)

// New returns a console. The screen must not block. If requests is set, there is a line for each request. now is the clock, in local time.
func New(screen terminal.Screen, requests bool, now func() time.Time) *Console {
	return &Console{screen: screen, requests: requests, now: now, said: map[string]time.Time{}}
}

// Start says where the proxy serves, and after that what was held back.
func (c *Console) Start(b Banner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(b.render(c.screen))
}

// release writes a text and what was held back.
func (c *Console) release(first string) {
	_, _ = fmt.Fprint(c.screen, first, strings.Join(c.held, "")) // there is nowhere to report an error
	c.started, c.held = true, nil
}

// Core returns the core of a logger that writes to the console. It leaves out what the lines of requests say.
func (c *Console) Core(level zapcore.LevelEnabler) zapcore.Core { return core{level, c, nil} }

// Ended adds a request that has ended, and writes its line.
func (c *Console) Ended(r *proxy.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turnDay(r.Times.Ended)
	c.all.Add(r)
	c.today.Add(r)
	if !c.requests {
		return
	}
	if l, worth := lineOf(r, dollars(c.today.Net())); worth {
		l.at = l.at.Local()
		c.write(l.render(c.screen))
	}
}

// Called adds a call of the proxy's own.
func (c *Console) Called(call limit.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turnDay(c.now())
	c.all.AddCall(call)
	c.today.AddCall(call)
}

// turnDay begins a new day if it is one.
func (c *Console) turnDay(at time.Time) {
	if day := at.Local().Format(time.DateOnly); day > c.day {
		c.day, c.today = day, Tally{}
	}
}

// End writes the total. What is still held back is written first.
func (c *Console) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started { // it never served
		c.release("")
		return
	}
	columns := c.screen.Columns()
	if columns == 0 {
		columns = boundary
	}
	text := ""
	for _, l := range terminal.Wrap(strings.Join(c.all.Sentences(), " "), columns-1) {
		text += l + "\n"
	}
	c.write(text)
}

// write writes a text, once the console has started. It begins at the left edge, where a terminal may show keys that were pressed.
func (c *Console) write(text string) {
	text = c.screen.EraseLine() + text
	if !c.started {
		c.held = append(c.held, text)
		return
	}
	_, _ = fmt.Fprint(c.screen, text)
}

// Bounds of the warnings that are remembered.
const (
	repeatAfter = 10 * time.Minute
	maxSaid     = 1000
)

// sayOnce reports whether a warning was not said lately.
func (c *Console) sayOnce(text string) bool {
	now := c.now()
	if at, said := c.said[text]; said && now.Sub(at) < repeatAfter {
		return false
	}
	if len(c.said) >= maxSaid {
		clear(c.said)
	}
	c.said[text] = now
	return true
}
