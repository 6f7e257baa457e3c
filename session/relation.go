package session

// Relation is how a request's history relates to the threads that are known.
type Relation struct {
	Kind   RelationKind
	Parent ThreadID // of a fork or a link; else empty
	ForkAt int      // messages, system prompts aside, that a fork shares with its parent
	System bool     // the thread goes on with other system messages than it was last seen with
}

// RelationKind says it in a word.
type RelationKind string

// The kinds.
const (
	RelationContinuation RelationKind = "continuation" // of a thread
	RelationReplay       RelationKind = "replay"       // of what a thread holds already
	RelationFork         RelationKind = "fork"         // of a thread, before its end: a message is another one, or left out
	RelationLink         RelationKind = "link"         // to a thread, by what was relayed to it, or by the parent that its client names
	RelationNew          RelationKind = "new"
)

// Begins reports whether a thread begins so.
func (k RelationKind) Begins() bool {
	return k == RelationFork || k == RelationLink || k == RelationNew
}

// Relation tells how the history relates to what was known.
func (res *Resolution) Relation() Relation {
	switch {
	case !res.New && res.Match == MatchReplay:
		return Relation{Kind: RelationReplay, System: res.systemChanged()}
	case !res.New:
		return Relation{Kind: RelationContinuation, System: res.systemChanged()}
	}
	r := Relation{Kind: RelationNew, Parent: res.Thread.Parent, ForkAt: res.Thread.ForkAt}
	switch {
	case res.Match == MatchInside:
		r.Kind = RelationFork
	case r.Parent != "":
		r.Kind = RelationLink
	}
	return r
}

func (res *Resolution) systemChanged() bool {
	return systemDigest(res.query.History.Messages) != res.Thread.System
}
