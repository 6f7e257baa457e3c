package h1

import (
	"slices"
	"sync"
	"time"
)

// idle keeps connections for the next request, the newest first.
type idle struct {
	keep time.Duration
	most int // of one host

	mu    sync.Mutex
	hosts map[string][]*conn
	timer *time.Timer
}

// get gives a kept connection that is still open, nil if there is none.
func (i *idle) get(addr string) *conn {
	for {
		c := i.take(addr)
		if c == nil || c.alive() {
			return c
		}
		_ = c.Close()
	}
}

func (i *idle) take(addr string) *conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	kept := i.hosts[addr]
	if len(kept) == 0 {
		return nil
	}
	c := kept[len(kept)-1]
	kept[len(kept)-1] = nil
	i.hosts[addr] = kept[:len(kept)-1]
	return c
}

func (i *idle) put(c *conn) {
	c.since = time.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.hosts[c.addr]) >= i.most {
		_ = c.Close()
		return
	}
	if i.hosts == nil {
		i.hosts = map[string][]*conn{}
	}
	i.hosts[c.addr] = append(i.hosts[c.addr], c)
	if i.timer == nil {
		i.timer = time.AfterFunc(i.keep, i.sweep)
	}
}

// sweep closes what was kept long enough, and comes again while there is more.
func (i *idle) sweep() {
	i.mu.Lock()
	defer i.mu.Unlock()
	old := time.Now().Add(-i.keep)
	i.timer = nil
	for addr, kept := range i.hosts {
		kept = slices.DeleteFunc(kept, func(c *conn) bool {
			if c.since.After(old) {
				return false
			}
			_ = c.Close()
			return true
		})
		if i.hosts[addr] = kept; len(kept) == 0 {
			delete(i.hosts, addr)
			continue
		}
		if i.timer == nil {
			i.timer = time.AfterFunc(i.keep, i.sweep)
		}
	}
}

func (i *idle) closeAll() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, kept := range i.hosts {
		for _, c := range kept {
			_ = c.Close()
		}
	}
	clear(i.hosts)
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}
