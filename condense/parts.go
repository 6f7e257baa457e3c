package condense

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// partsAtOnce is how many parts of a span are read at the same time.
const partsAtOnce = 4

// readParts asks for the records of all parts and gives the prompt that merges them. The first failure ends it. A panic in
// one of them becomes the caller's, who can catch it: in a goroutine of its own it would end the process.
func (j *llmJob) readParts(ctx context.Context, p prompt, pl plan) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	records := make([]string, len(pl.texts))
	var first error
	var panicked any
	var failed sync.Once
	var running sync.WaitGroup
	places := make(chan struct{}, partsAtOnce)
	for i, text := range pl.texts {
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			defer func() {
				if v := recover(); v != nil {
					failed.Do(func() { panicked = fmt.Sprintf("%v\n%s", v, debug.Stack()) })
					cancel()
				}
			}()
			record, err := j.readPart(ctx, text, pl.output)
			if err != nil {
				failed.Do(func() { first = err })
				cancel()
			}
			records[i] = record
		})
	}
	running.Wait()
	if panicked != nil {
		panic(panicked)
	}
	return p.merge(records), first
}

// readPart asks for the record of one part.
func (j *llmJob) readPart(ctx context.Context, text string, output int) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	r := j.request(text)
	r.MaxOutput = output
	reply, err := j.call(ctx, r)
	if err != nil {
		return "", err
	}
	record, err := j.form.record(reply)
	if err != nil {
		return "", err
	}
	if n := j.in.Count(record); n > output {
		return "", j.inflated(n, output)
	}
	return record, nil
}

// call makes one call, and counts it. Several may run at the same time.
func (j *llmJob) call(ctx context.Context, r Request) (Reply, error) {
	reply, err := j.s.Summariser.Summarise(ctx, r)
	j.calls.Add(1)
	if err != nil {
		return Reply{}, err
	}
	return reply, nil
}

// made is how many calls there were so far.
func (j *llmJob) made() int { return int(j.calls.Load()) }

// inflated is the error for a record of that many tokens.
func (j *llmJob) inflated(tokens, limit int) error {
	return &SummaryError{Kind: FaultInflated, Detail: fmt.Sprintf("%d tokens, limit %d", tokens, limit)}
}
