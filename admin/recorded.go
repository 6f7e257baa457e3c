package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/admin/ui"
	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// maxRecorded is how many records of a session's requests a page reads.
const maxRecorded = 10_000

// recorded returns the records of a session's requests by the key under which its threads note them; the newest counts.
func (a *api) recorded(ctx context.Context, id session.SessionID) (map[uint64]account.Step, error) {
	if a.o.Journal == nil {
		return nil, nil
	}
	steps, err := a.o.Journal.Steps(ctx, id, 0, maxRecorded)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names its operation
	}
	byKey := make(map[uint64]account.Step, len(steps))
	for _, s := range steps {
		key := session.RequestKey(s.Request)
		if _, newer := byKey[key]; !newer {
			byKey[key] = s
		}
	}
	return byKey, nil
}

// apply sets what the record of a step's request says better than its log.
func apply(to *ui.StepSize, s *account.Step) {
	p := &s.Parts
	to.Sent, to.Messages = s.Before.Tokens, s.Before.Events
	to.Prompt, to.Record, to.Kept, to.New = p.System+p.Tools, p.Record, p.Head+p.Kept, p.New
	if p.Sum() == 0 {
		to.Kept = s.After.Tokens
	}
	to.Time, to.Added, to.Model, to.Cached = s.Begun, s.Times.Overhead, s.Model, s.Cached
	to.Whole = s.Whole != ""
	if s.Whole != "" {
		to.Done = "over " + limitWords(s.Due) + ", left whole: " + s.Whole
	}
	if s.Reported {
		to.Cache = cacheWords(s)
	}
	if s.Status >= 400 {
		to.Done = fmt.Sprintf("answered %d: %s", s.Status, s.Code)
	}
}

func limitWords(due session.Reason) string {
	if due == "" {
		return "a limit"
	}
	return "the limit on " + string(due)
}

// cacheWords says what the provider read from its prompt cache.
func cacheWords(s *account.Step) string {
	switch {
	case s.Input == 0:
		return ""
	case s.Cached == 0:
		return "nothing"
	}
	return fmt.Sprintf("%d%%", 100*s.Cached/s.Input)
}

// facts says what was recorded of a step's request.
func facts(s *account.Step) *ui.StepFacts {
	f := &ui.StepFacts{Model: s.Model, Request: s.Request}
	add := func(name, text string) { f.Rows = append(f.Rows, ui.Fact{Name: name, Text: text}) }
	if s.Reported {
		cached := "none of it from the cache"
		if s.Cached > 0 {
			cached = fmt.Sprintf("%s of it from the cache (%s)", ui.Tokens(s.Cached), cacheWords(s))
		}
		add("The provider counted", fmt.Sprintf("%s tokens in, %s; %s out", ui.Tokens(s.Input), cached, ui.Tokens(s.Output)))
	}
	if s.Miss != "" && s.Miss != account.MissFirst {
		add("Cache missed", s.Miss.Words())
	}
	if s.Split != "" {
		add("Began a thread", account.LeftWords(string(s.Split), s.SplitAt))
	}
	if s.Whole != "" {
		f.Rows = append(f.Rows, ui.Fact{Name: "Left whole", Text: "over " + limitWords(s.Due) + ": " + s.Whole, Bad: true})
	}
	if s.Charged > 0 {
		text := ui.USD(float64(s.Charged) / nanoPerUSD)
		if s.Saved != 0 {
			text += fmt.Sprintf("; %s without Dewpoint", ui.USD(float64(s.Charged+s.Saved)/nanoPerUSD))
		}
		add("Cost", text)
	}
	if s.Agent != "" {
		add("Client", s.Agent+" "+s.Version)
	}
	if s.Status > 0 && (s.Status != 200 || s.Code != "") {
		f.Rows = append(f.Rows, ui.Fact{Name: "Answer", Text: fmt.Sprintf("%d %s", s.Status, s.Code), Bad: true})
	}
	f.Times = times(&s.Times)
	if p := &s.Parts; p.Sum() > 0 {
		f.Origin = []int{p.System, p.Tools, p.Record, p.Head + p.Kept, p.New}
	}
	return f
}

// times returns the parts of a request's time, one after another.
func times(t *account.Times) (spans []ui.Span) {
	at := time.Duration(0)
	add := func(name, class string, d time.Duration) {
		if d > 0 {
			spans = append(spans, ui.Span{Name: name, Class: class, From: at, For: d})
			at += d
		}
	}
	add("reading the request", "tools", t.Read)
	add("Dewpoint", "record", t.Overhead)
	add("waiting for a condensation", "whole", t.Waited)
	add("until the first byte of the answer", "kept", t.Upstream)
	add("the answer", "new", t.Answer)
	return spans
}
