package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/lru"
)

// Registry recognises histories and writes them to the log. It is safe for concurrent use.
type Registry struct {
	store     Store
	secret    Secret
	hints     lru.Cache[Hash, ThreadID] // the thread that a chain hash was last seen in; saves a round trip
	summaries lru.Cache[summaryKey, string]
}

const (
	hintCacheSize    = 1 << 16
	summaryCacheSize = 1 << 12
	maxAppends       = 3 // attempts to append, if other requests keep appending to the thread
)

// NewRegistry returns a registry over a store.
func NewRegistry(store Store, secret Secret) *Registry {
	hints := lru.New[Hash, ThreadID](hintCacheSize)
	summaries := lru.New[summaryKey, string](summaryCacheSize)
	return &Registry{store: store, secret: secret, hints: hints, summaries: summaries}
}

// newID returns a unique id of 32 hexadecimal digits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Query is a history to recognise.
type Query struct {
	Scope   Scope
	Parent  string // session key of the parent, if the client named one
	Purpose Purpose
	Dialect string // wire protocol of the messages
	Request string // request id that operators can search for; may be empty
	History *History
	Texts   func() []string // texts to search for traces; called only if nothing else matches

	randomNames bool    // use random ids, because those derived from the history are taken
	unproven    Place   // the end of a prefix that the history shares with a thread, if that does not prove that they belong together
	lookup      *lookup // what the store knows of the history
}

// Resolution says which thread a history belongs to.
type Resolution struct {
	Thread Thread // its record: as stored, or as Append will create it
	New    bool   // the history begins the thread
	Begins bool   // it begins the session too, which exists already only if a sub-agent has named it as its parent's
	Match  Match
	Source Source
	Logged int         // number of positions that are in the thread's log already
	Known  Place       // end of the longest known prefix, with its token count
	Again  bool        // the same history was answered before, so the same view must be forwarded
	Base   *Resolution // for a side request that branches off: the resolution of the history without the request's own message

	Unreadable int // condensations and replacements that do not apply because their text is unreadable; set by Condensations and Replacements

	query         Query
	opening       bool      // the history consists only of opening messages, so other conversations may begin with the same ones
	parentCreated time.Time // for a new fork: when its parent was created
}

// WithoutText returns a copy that keeps no bytes of the request alive. It may be passed to Answered and Replace, but not to
// methods that read messages.
func (res *Resolution) WithoutText() Resolution {
	bare := *res
	bare.query.Texts = nil
	if bare.query.History != nil {
		bare.query.History = bare.query.History.WithoutMessages()
	}
	if bare.Base != nil {
		base := bare.Base.WithoutText()
		bare.Base = &base
	}
	return bare
}

// Over returns a copy that is used with a history in place of its own, which the log must hold as far as the resolution says.
func (res *Resolution) Over(h *History) Resolution {
	other := *res
	other.query.History = h
	return other
}

// Source says how a session was recognised.
type Source string

// The sources, most certain first.
const (
	SourceKey    Source = "key"    // the client named it
	SourcePrefix Source = "prefix" // its history was known
	SourceTrace  Source = "trace"  // the history contains something that was relayed in the session
	SourceNew    Source = "new"
)

// Resolve finds the thread that a history continues, or the session in which it begins a thread. It writes nothing.
func (r *Registry) Resolve(ctx context.Context, q Query) (Resolution, error) {
	res, err := r.resolve(ctx, q)
	if err != nil {
		return Resolution{}, fmt.Errorf("resolve: %w", err)
	}
	return res, nil
}

func (r *Registry) resolve(ctx context.Context, q Query) (Resolution, error) {
	found, err := r.lookUp(ctx, q)
	if err != nil {
		return Resolution{}, err
	}
	res := Resolution{Source: SourceNew, Known: found.known, query: q, opening: onlyOpening(q.History)}
	q.lookup = found
	thread := found.thread
	if thread != nil {
		res.Match, res.Logged = classify(q.History, found.known.Pos, thread)
		separate, err := r.isSeparate(ctx, q, &res, thread)
		if err != nil {
			return Resolution{}, err
		}
		if separate {
			res.Match = MatchNone
		}
	}
	if q.Purpose.Branches() && found.known.Pos < q.History.Len() && q.History.Len() > 1 {
		return r.resolveBranch(ctx, q, res)
	}
	thread, err = r.verifyFork(ctx, &q, &res, thread)
	if err != nil {
		return Resolution{}, err
	}
	err = r.assignThread(ctx, q, &res, thread)
	return res, err
}

// assignThread sets the resolution's thread according to its match.
func (r *Registry) assignThread(ctx context.Context, q Query, res *Resolution, thread *Thread) error {
	var err error
	switch res.Match {
	case MatchEnd, MatchReplay:
		res.Thread, res.Source = *thread, SourcePrefix
		if res.Match == MatchEnd && res.Logged < q.History.Len() {
			res.Thread.Lost = 0 // the client continues the thread itself, so the thread's summaries apply
		}
	case MatchInside:
		res.Thread, res.Source = r.fork(ctx, thread, q, res.Logged), SourcePrefix
		res.New, res.parentCreated = true, thread.Created
		err = r.follow(ctx, q.History, &res.Thread, thread)
	case MatchNone:
		err = r.beginThread(ctx, q, res)
	}
	if err != nil {
		return err
	}
	if q.Scope.Key != "" {
		res.Source = SourceKey
	}
	if res.Match != MatchEnd || res.Logged != q.History.Len() {
		return nil
	}
	res.Again, err = r.answered(ctx, q)
	return err
}

// readThread reads a thread, nil if it does not exist.
func (r *Registry) readThread(ctx context.Context, id ThreadID) (*Thread, error) {
	thread, err := r.store.Thread(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read thread: %w", err)
	}
	return &thread, nil
}

// isSeparate reports whether a history without a session key is a separate conversation that only begins like the thread it was found in.
// That is so if they share only the agent's greeting. It is also so if the history consists only of opening messages and is not a
// retry, because the thread has more messages already or the history was answered.
func (r *Registry) isSeparate(ctx context.Context, q Query, res *Resolution, thread *Thread) (bool, error) {
	switch {
	case q.Scope.Key != "":
		return false, nil
	case onlyGreeting(q.History, res.Known.Pos):
		return true, nil
	case !onlyOpening(q.History):
		return false, nil
	case res.Match == MatchReplay && thread.Len > q.History.Len():
		return true, nil
	case res.Known.Pos < q.History.Len():
		return false, nil
	}
	return r.answered(ctx, q)
}

// fork returns a new thread that shares its parent's first at positions and the condensations that apply to them.
func (r *Registry) fork(ctx context.Context, parent *Thread, q Query, at int) Thread {
	now, id := time.Now(), ThreadID(newID())
	if !q.randomNames && at < q.History.Len() { // derived from its parent and its first own message
		id = ThreadID(trace(q.History.Chain[at+1], 'F', string(parent.ID)).String()[:32])
	}
	return Thread{
		ID: id, Session: parent.Session, Tenant: parent.Tenant, Purpose: q.Purpose, Dialect: q.Dialect,
		Origin: Origin{Parent: parent.ID, ForkAt: at, Lost: parent.Lost}, Len: at, Head: q.History.Chain[at], System: parent.System, Created: now, Seen: now,
		Lists: Lists{
			Condensations: r.carryOver(ctx, q.History, parent.Condensations, at),
			Replacements: slices.DeleteFunc(slices.Clone(parent.Replacements), func(c Condensation) bool {
				return c.Prefix > at || !q.History.Covers(c.Prefix, c.Hash)
			}),
		},
	}
}

// resolveBranch resolves a side request that appends its own last message to a history. The history without that message
// is resolved separately as Base, and the side request becomes a fork at its end.
func (r *Registry) resolveBranch(ctx context.Context, q Query, res Resolution) (Resolution, error) {
	last := q.History.At(q.History.Len())
	main := q
	main.History = NewHistory(q.History.Chain[0], q.History.Messages[:last])
	main.Purpose = PurposeMain
	base, err := r.resolve(ctx, main)
	if err != nil {
		return Resolution{}, err
	}
	at := main.History.Len()
	res.Base = &base
	res.Thread, res.New, res.Begins = r.fork(ctx, &base.Thread, q, at), true, base.Begins
	res.Match, res.Source = MatchInside, base.Source
	res.Logged, res.parentCreated = at, base.Thread.Created
	return res, nil
}
