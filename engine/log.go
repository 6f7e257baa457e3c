package engine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// logWrite is the write of a turn's new messages. Fields other than said must be read only after done is closed.
type logWrite struct {
	done  chan struct{}
	place session.Resolution // of the written messages; zero if writing failed
	left  session.Divergence // where and why a thread began
	said  session.Said       // if upstream keeps the history: the request's messages, after those that the log lacks
}

// finished reports whether the write has ended. A nil logWrite never does.
func (l *logWrite) finished() bool {
	if l == nil {
		return false
	}
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// Log returns the form whose messages are being logged, and a function that writes the new ones to the log and reports whether there were any. The
// function must be called exactly once, in any goroutine, and releases the body at its end. If it fails, the thread's next request writes the
// messages.
func (f *Form) Log() (_ *Form, write func(ctx context.Context) (wrote bool, err error)) {
	f.turn.in.Body.Hold() // events alias it
	l := &logWrite{done: make(chan struct{})}
	f = f.with(func(next *Form) { next.logged = l })
	return f, func(ctx context.Context) (bool, error) {
		defer f.turn.in.Body.Release()
		defer close(l.done)
		if f.turn.remote() {
			l.said = f.turn.said(ctx)
			return false, nil
		}
		tally, place := f.turn.counted().tally, f.at()
		ctx, cancel := context.WithTimeout(ctx, f.turn.engine.o.Limits.Store)
		defer cancel()
		if err := f.turn.registry.Append(ctx, place, &tally); err != nil {
			return false, err
		}
		l.place = place.WithoutText()
		d, _ := f.turn.registry.Diverges(ctx, f.at()) // an error shows in the cause
		l.left = d
		return place.Logged > f.place.Logged, nil
	}
}

// Logs reports whether Log was called.
func (f *Form) Logs() bool { return f.logged != nil }

// Left returns where and why a thread began with this request although part of its history was known; the zero value if none did. It does
// not wait for the log.
func (f *Form) Left() session.Divergence {
	switch {
	case !f.place.New:
		return session.Divergence{}
	case f.logged.finished():
		return f.logged.left
	}
	return session.Divergence{Cause: session.CauseUnread}
}

// awaitLog waits until the messages of this request are written, if they are to be.
func (f *Form) awaitLog() {
	if f.logged != nil {
		<-f.logged.done
	}
}

// Answered returns a function that logs the traces of an answer, by which its thread is recognised later. The function must be called
// exactly once, in any goroutine, and waits for the one that Log returned. If upstream keeps the history, it also logs the request, and
// holds the body until then.
//
// The echo is the answer as the client will send it back. It is nil unless upstream has to see something else in its place.
func (f *Form) Answered(answer dialect.Answer, echo []byte) func(ctx context.Context) error {
	ids, arguments := []string(nil), slices.Clone(answer.Compactions)
	for _, c := range answer.Calls {
		ids = append(ids, c.ID)
		arguments = append(arguments, argumentTexts(c.Arguments)...)
	}
	kept := f.turn.keptTraces(answer)
	items := f.turn.rememberItems(answer)
	release := func() {}
	if f.turn.remote() {
		f.turn.in.Body.Hold() // for the system messages
		release = f.turn.in.Body.Release
	}
	return func(ctx context.Context) error {
		defer release()
		f.awaitLog()
		if f.logged == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, f.turn.engine.o.Limits.Store)
		defer cancel()
		var err error
		place, seed := &f.logged.place, f.turn.history.Chain[0]
		switch {
		case f.turn.remote():
			err = f.logKept(ctx, answer, slices.Concat(kept, session.CallTraces(seed, ids), session.AnswerTraces(seed, answer.Text, arguments)))
		case place.Thread.ID != "":
			if f.turn.in.Split.Stores && f.turn.continues(answer) && len(answer.Said) <= maxAnswerKept {
				f.turn.engine.memory.answers.Add(session.KeptTrace(seed, answer.ID), answer.Said)
			}
			if len(items) > 0 && f.turn.continues(answer) {
				kept = append(kept, session.ItemsTrace(seed, answer.ID, items))
			}
			err = errors.Join(f.logReplacement(ctx, echo), f.turn.registry.Answered(ctx, place, answer.Text, ids, arguments, kept...))
			if len(items) > 0 {
				err = errors.Join(err, f.turn.registry.KeepItems(ctx, place, items))
			}
		}
		if errors.Is(err, session.ErrNotFound) { // the session was deleted meanwhile
			return nil
		}
		return err
	}
}

// argumentTexts returns the strings in a tool call's arguments, at any depth. A sub-agent's task is one of them.
func argumentTexts(arguments string) []string {
	if len(arguments) > maxArguments {
		return nil
	}
	var v any
	if json.Unmarshal([]byte(arguments), &v) != nil {
		return nil
	}
	return appendStrings(nil, v)
}

// maxArguments is the size in bytes up to which a call's arguments are read as JSON.
const maxArguments = 64 << 10

// appendStrings appends the strings in a JSON value to out.
func appendStrings(out []string, v any) []string {
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = appendStrings(out, e)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = appendStrings(out, v[key])
		}
	}
	return out
}
