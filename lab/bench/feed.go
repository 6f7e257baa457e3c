package bench

import (
	"bytes"
	"fmt"
	"strconv"
)

// Kind is what a request is to its target.
type Kind string

// The kinds of requests.
const (
	Known     Kind = "known + 2"  // a session that the target knows, with two new messages
	FirstSeen Kind = "first seen" // a history of which it has seen nothing
)

// feed gives the requests of one connection, one after another.
type feed struct {
	rig      *rig
	kind     Kind
	template *History
	current  *History
	step     int
}

// item is a request that is to be made of every target.
type item struct {
	history *History
	step    int
	prime   bool // the history's first request has to be made before
}

// next gives the next item. Histories change before they grow out of their size.
func (f *feed) next() item {
	if f.current == nil || f.step >= f.current.Steps() || f.kind == FirstSeen {
		f.current, f.step = f.rig.fork(f.template), 0
		if f.kind == FirstSeen {
			return item{history: f.current}
		}
	}
	f.step++
	return item{history: f.current, step: f.step, prime: f.step == 1}
}

// request makes an item's request of a target.
func (f *feed) request(t *Target, i item) *request {
	api := i.history.api
	return &request{call: call{Target: t, Body: i.history.Step(i.step, false), Answer: string(api), path: api.path()}}
}

// primeTries is how often a session's beginning is shown at most: a target whose store is late does not take it.
const primeTries = 3

// prime shows a target the beginning of a session.
func (f *feed) prime(c *client, t *Target, h *History) error {
	q := f.request(t, item{history: h})
	for range primeTries {
		a, _, err := f.rig.ask(c, q)
		if err != nil {
			return err
		}
		if a.Thread != "" {
			return nil
		}
	}
	return fmt.Errorf("%s: the beginning of a session was not taken", t.Name)
}

// intact checks that an answer is the mock's own, to its end.
func intact(a *answer, q *request) error {
	if a.Status != 200 {
		return fmt.Errorf("answered %d: %.300s", a.Status, a.Body)
	}
	if !bytes.Contains(a.Body, []byte(`"chatcmpl-`+strconv.FormatUint(q.ID, 10)+`"`)) {
		return fmt.Errorf("another request's answer: %.300s", a.Body)
	}
	return nil
}
