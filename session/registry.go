package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Registry recognises histories and writes them to the log. It is safe for concurrent use.
type Registry struct {
	store     Store
	secret    Secret
	now       func() time.Time
	newID     func() string
	hints     *lru.Cache[Hash, ThreadID] // which thread a chain hash was last seen in: saves a round trip
	summaries *lru.Cache[summaryName, string]
}

// RegistryOptions are the parts a Registry needs. Now and NewID have defaults.
type RegistryOptions struct {
	Store  Store
	Secret Secret
	Now    func() time.Time
	NewID  func() string // unique, 32 hexadecimal digits by default
}

const (
	hintsKept     = 1 << 16
	summariesKept = 1 << 12
	resolveTries  = 3
)

// NewRegistry makes a registry over a store.
func NewRegistry(o RegistryOptions) (*Registry, error) {
	hints, hintsErr := lru.New[Hash, ThreadID](hintsKept)
	summaries, err := lru.New[summaryName, string](summariesKept)
	if err := errors.Join(hintsErr, err); err != nil {
		return nil, fmt.Errorf("new registry: %w", err)
	}
	r := &Registry{store: o.Store, secret: o.Secret, now: o.Now, newID: o.NewID, hints: hints, summaries: summaries}
	if r.now == nil {
		r.now = time.Now
	}
	if r.newID == nil {
		r.newID = randomID
	}
	return r, nil
}

func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Query is a history to be recognised.
type Query struct {
	Scope   Scope
	Parent  string // session key of the parent that the client named, empty if none
	Purpose Purpose
	Dialect string // wire protocol of the messages
	Request string // its id, by which an operator finds it; empty if it has none
	History *History
	Texts   func() []string // the texts to look for traces in; asked for only when nothing else matches
	other   bool            // the names that the history would have are taken
	apart   Place           // it shares so much with a thread; what that thread has left up to there links it to nothing
	look    *look           // what the store said of it
}

// Resolution is where a history belongs.
type Resolution struct {
	Thread Thread // its record: as stored, or as it will begin
	New    bool   // the thread begins with this history
	Begins bool   // and so does its session, but for one that so far was only named as a parent
	Match  Match
	Source Source
	Logged int         // positions that the thread's log holds already
	Known  Place       // the longest known prefix, with its token count
	Again  bool        // the same history was answered before: whatever was forwarded then is to be forwarded now
	Base   *Resolution // of a side request that branches off: the history that it hangs on
	query  Query
	parent time.Time // when the thread began that a new fork shares

	Unreadable int // summaries that could not be read, so that their condensations do not apply: see Condensations
}

// Source says by what a session was recognised.
type Source string

// The sources, most certain first.
const (
	SourceKey    Source = "key"    // the client named it
	SourcePrefix Source = "prefix" // by its history
	SourceTrace  Source = "trace"  // by something relayed to it
	SourceNew    Source = "new"
)

// Resolve finds the thread that a history continues, or the session that it begins a thread in. It writes nothing.
func (r *Registry) Resolve(ctx context.Context, q Query) (Resolution, error) {
	res, err := r.resolve(ctx, q)
	if err != nil {
		return Resolution{}, fmt.Errorf("resolve: %w", err)
	}
	return res, nil
}

func (r *Registry) resolve(ctx context.Context, q Query) (Resolution, error) {
	l, err := r.longest(ctx, q)
	if err != nil {
		return Resolution{}, err
	}
	res := Resolution{Source: SourceNew, Known: l.known, query: q}
	q.look = l
	thread := l.thread
	if thread != nil {
		res.Match, res.Logged = classify(q.History, l.known.Pos, thread)
	}
	again, err := r.beganAgain(ctx, q, &res, thread)
	if err != nil {
		return res, err
	}
	if again {
		res.Match = MatchNone
	}
	if q.Purpose.Branches() && l.known.Pos < q.History.Len() && q.History.Len() > 1 {
		return r.branch(ctx, q, res)
	}
	if thread, err = r.proven(ctx, &q, &res, thread); err != nil {
		return res, err
	}
	err = r.settle(ctx, q, &res, thread)
	return res, err
}

// settle turns a match into a thread.
func (r *Registry) settle(ctx context.Context, q Query, res *Resolution, thread *Thread) (err error) {
	switch res.Match {
	case MatchEnd, MatchReplay:
		res.Thread, res.Source = *thread, SourcePrefix
	case MatchInside:
		res.Thread, res.New, res.parent, res.Source = r.fork(thread, q, res.Logged), true, thread.Created, SourcePrefix
	case MatchNone:
		err = r.begin(ctx, q, res)
	}
	if q.Scope.Key != "" {
		res.Source = SourceKey
	}
	if err == nil && res.Match == MatchEnd && res.Logged == q.History.Len() {
		res.Again, err = r.answered(ctx, q)
	}
	return err
}

// known reads a thread; nil if there is none.
func (r *Registry) known(ctx context.Context, id ThreadID) (*Thread, error) {
	thread, err := r.store.Thread(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read thread: %w", err)
	}
	return &thread, nil
}

// beganAgain reports whether a history that came without a session key is another conversation that begins like a known
// one: all that they share is the agent's greeting, or it is nothing but first user messages and no retry, since the
// known one went on or has got its answer.
func (r *Registry) beganAgain(ctx context.Context, q Query, res *Resolution, thread *Thread) (bool, error) {
	if q.Scope.Key != "" || thread == nil {
		return false, nil
	}
	if greets(q.History, res.Known.Pos) {
		return true, nil
	}
	if !begins(q.History, q.History.Len()) {
		return false, nil
	}
	if res.Match == MatchReplay && thread.Len > q.History.Len() {
		return true, nil
	}
	if res.Known.Pos < q.History.Len() {
		return false, nil
	}
	return r.answered(ctx, q)
}

// fork begins a thread that shares its parent's first at positions, and the condensations that hold for it.
func (r *Registry) fork(parent *Thread, q Query, at int) Thread {
	return Thread{
		ID: r.forkID(parent, q, at), Session: parent.Session, Tenant: parent.Tenant, Purpose: q.Purpose, Dialect: q.Dialect,
		Parent: parent.ID, ForkAt: at, Len: at, Head: q.History.Chain[at], System: parent.System,
		Created: r.now(), Seen: r.now(), Lists: Lists{carried(q.History, parent.Condensations, at), asidesOf(q.History, parent.Asides, at)},
	}
}

// forkID names a fork by its parent and its first message.
func (r *Registry) forkID(parent *Thread, q Query, at int) ThreadID {
	if q.other || at == q.History.Len() {
		return ThreadID(r.newID())
	}
	return ThreadID(trace(q.History.Chain[at+1], 'F', string(parent.ID)).String()[:32])
}

// branch resolves a side request that hangs its own last message on a history: the history is resolved by itself, as
// the thread that goes on without it, and the side request is a fork at its end.
func (r *Registry) branch(ctx context.Context, q Query, own Resolution) (Resolution, error) {
	main := q
	main.History = NewHistory(q.History.Chain[0], q.History.Messages[:q.History.At(q.History.Len())])
	main.Purpose = PurposeMain
	base, err := r.resolve(ctx, main)
	if err != nil {
		return Resolution{}, err
	}
	res := own
	res.Match, res.New, res.Begins, res.Source, res.Base = MatchInside, true, base.Begins, base.Source, &base
	at := main.History.Len()
	parent := base.Thread
	parent.Len, parent.Head = at, main.History.Head()
	res.Thread, res.Logged, res.parent = r.fork(&parent, q, at), at, parent.Created
	return res, nil
}

// begin makes a thread for a history that matched nothing, in the session that its key, its parent's key or its traces
// name, or in a new one.
func (r *Registry) begin(ctx context.Context, q Query, res *Resolution) error {
	now := r.now()
	seed := q.History.Chain[0]
	id, session, named, err := r.names(ctx, q)
	if err != nil {
		return err
	}
	if ours, err := r.unindexed(ctx, q, res, named); ours || err != nil {
		return err
	}
	linked, err := r.linked(ctx, q)
	if err != nil {
		return err
	}
	t := Thread{ID: id, Tenant: q.Scope.Tenant, Purpose: q.Purpose, Dialect: q.Dialect, Head: seed, Created: now, Seen: now}
	if linked.Known() {
		from, err := r.known(ctx, linked.Thread)
		switch {
		case err != nil:
			return err
		case from == nil:
		case linked.Pos == 0 && from.Len == 0: // it got an answer, which the history begins with: its request was but a system prompt
			res.Thread, res.Match, res.Source, res.Known = *from, MatchEnd, SourceTrace, Place{}
			return nil
		default:
			t.Condensations = carried(q.History, from.Condensations, 0)
		}
	}
	keyed, known, err := r.keyed(ctx, q)
	if err != nil {
		return err
	}
	switch {
	case keyed != "":
		t.Session, res.Begins = keyed, !known
		if linked.Session == keyed {
			t.Parent = linked.Thread
		}
	case linked.Known():
		t.Session, t.Parent = linked.Session, linked.Thread
		res.Source = SourceTrace
	default:
		t.Session, res.Begins = session, true
	}
	res.Thread, res.New, res.Logged, res.Known = t, true, 0, Place{}
	return nil
}

// keyed gives the session of the client's session key, empty if it gave none, and whether it is known. A key's session is
// that of its parent's key, where the client named a parent.
func (r *Registry) keyed(ctx context.Context, q Query) (id SessionID, known bool, err error) {
	if q.Scope.Key == "" {
		return "", false, nil
	}
	places, err := r.traced(ctx, q.look, r.keyTraces(q))
	if err != nil {
		return "", false, err
	}
	for _, p := range places {
		if p.Known() {
			return p.Session, true, nil
		}
	}
	if q.Parent != "" {
		return r.secret.SessionID(q.parent()), false, nil
	}
	return r.secret.SessionID(q.Scope), false, nil
}

// keyTraces are where the session of the client's session key is remembered, and that of its parent's key.
func (r *Registry) keyTraces(q Query) []Hash {
	traces := []Hash{KeyTrace(q.History.Chain[0])}
	if q.Parent != "" {
		traces = append(traces, KeyTrace(r.secret.Seed(q.parent())))
	}
	return traces
}

// parent is the scope of the parent's key.
func (q Query) parent() Scope {
	scope := q.Scope
	scope.Key = q.Parent
	return scope
}

// linked finds the thread that left most of the traces which the history carries.
func (r *Registry) linked(ctx context.Context, q Query) (Place, error) {
	var texts []string
	if q.Texts != nil {
		texts = q.Texts()
	}
	var messages []Message
	if q.apart.Pos < q.History.Len() {
		messages = q.History.Messages[q.History.At(q.apart.Pos+1):]
	}
	traces := HistoryTraces(q.History.Chain[0], messages, texts, q.Purpose)
	if len(traces) == 0 {
		return Place{}, nil
	}
	places, err := r.trace(ctx, traces)
	if err != nil {
		return Place{}, err
	}
	votes := map[ThreadID]int{}
	var best Place
	for _, p := range places {
		if !p.Known() || p.Thread == q.apart.Thread && p.Pos <= q.apart.Pos {
			continue
		}
		votes[p.Thread]++
		if votes[p.Thread] > votes[best.Thread] {
			best = p
		}
	}
	return best, nil
}
