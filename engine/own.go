package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/recall"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Claim is a client's claim to a session, by the client's own key.
type Claim struct {
	Tenant     string
	Anonymous  bool   // of the tenant: the credential tells its clients apart
	Credential string // as in Client
	Session    string // its id or its session key
}

// Owned is a session whose client has shown that it is its own.
type Owned struct {
	session.Session
	Threads []session.Thread // oldest first
	engine  *Engine
	store   session.Store
}

// Own returns a session if it is the claiming client's. It returns session.ErrNotFound if there is none, or if it is another client's.
//
// A tenant's clients share its sessions. Where clients are only told apart by their credentials, the session must begin with a chain hash that
// is made of the claimed one.
func (e *Engine) Own(ctx context.Context, c Claim) (Owned, error) {
	var own Owned
	err := e.withStore(ctx, func(ctx context.Context, store session.Store, secret session.Secret) error {
		scope := session.Scope{Tenant: c.Tenant}
		if c.Anonymous {
			scope.Credential = secret.Credential(c.Credential)
		}
		keyed := scope
		keyed.Key = c.Session
		for _, id := range []session.SessionID{session.SessionID(c.Session), secret.SessionID(keyed)} {
			found, err := store.Session(ctx, id)
			if errors.Is(err, session.ErrNotFound) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read session: %w", err)
			}
			own = Owned{Session: found, engine: e, store: store}
			if own.Threads, err = readThreads(ctx, store, found.Threads); err != nil {
				return err
			}
			if own.belongsTo(ctx, scope, secret) {
				return nil
			}
		}
		return session.ErrNotFound
	})
	if err != nil {
		return Owned{}, err
	}
	return own, nil
}

func readThreads(ctx context.Context, store session.Store, ids []session.ThreadID) (threads []session.Thread, err error) {
	for _, id := range ids {
		t, err := store.Thread(ctx, id)
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read thread: %w", err)
		}
		threads = append(threads, t)
	}
	return threads, nil
}

// belongsTo reports whether the session is of a scope, under one of its keys or none.
func (o *Owned) belongsTo(ctx context.Context, scope session.Scope, secret session.Secret) bool {
	if o.Tenant != scope.Tenant {
		return false
	}
	if scope.Credential == "" {
		return true
	}
	keys := append([]string{"", o.Key}, o.Names...)
	for i := range o.Threads {
		first, ok := o.firstEvent(ctx, &o.Threads[i])
		if !ok {
			continue
		}
		return slices.ContainsFunc(keys, func(key string) bool {
			scope.Key = key
			return session.Next(secret.Seed(scope), first.Digest) == first.Chain
		})
	}
	return false
}

// firstPage is how many entries of a log are read to find its first message. Prompts and notes come before it.
const firstPage = 32

// firstEvent returns a thread's first message, if its log has it.
func (o *Owned) firstEvent(ctx context.Context, t *session.Thread) (session.Event, bool) {
	events, err := o.store.Events(ctx, t.ID, 1, firstPage)
	i := slices.IndexFunc(events, func(e session.Event) bool { return e.Pos == 1 })
	if err != nil || i < 0 {
		return session.Event{}, false
	}
	return events[i], true
}

// main returns the session's main thread that was seen last, nil if it has none.
func (o *Owned) main() (newest *session.Thread) {
	for i := range o.Threads {
		if t := &o.Threads[i]; cmp.Or(t.Purpose, session.PurposeMain) == session.PurposeMain && (newest == nil || t.Seen.After(newest.Seen)) {
			newest = t
		}
	}
	return newest
}

// Record returns the newest record of the session's main thread: what stands in its view for the messages that it hides. It is empty if nothing was
// condensed into one.
func (o *Owned) Record(ctx context.Context) (string, error) {
	t := o.main()
	if t == nil {
		return "", nil
	}
	for _, c := range slices.Backward(t.Condensations) {
		if c.SummaryTokens == 0 {
			continue
		}
		text, err := o.store.Summary(ctx, c.ID)
		if err != nil && !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrUnreadable) {
			return "", fmt.Errorf("read record: %w", err)
		}
		if text != "" {
			return text, nil
		}
	}
	return "", nil
}

// Savings returns what condensing saved in the session, net of its own calls, and how many condensations there were.
func (o *Owned) Savings(ctx context.Context) (sum session.Savings, condensations int, err error) {
	for i := range o.Threads {
		t := &o.Threads[i]
		saved, err := o.store.Saved(ctx, t.ID)
		if err != nil {
			return sum, 0, fmt.Errorf("read savings: %w", err)
		}
		sum.Add(saved)
		for _, c := range t.Condensations {
			if c.ID.Thread == t.ID && c.Added == 0 {
				condensations++
			}
		}
	}
	return sum, condensations, nil
}

// maxRecalled bounds how much of a thread is read to search it, in bytes.
const maxRecalled = 16 << 20

// Recall returns the lines of the session's main thread that match a query, or whole events by their ids.
func (o *Owned) Recall(ctx context.Context, query, event string) (string, error) {
	t := o.main()
	if t == nil {
		return "There is no conversation in this session.", nil
	}
	span, named := recall.ParseSpan(event)
	if !named && strings.TrimSpace(query) == "" {
		return "Give a query, or the id of an event.", nil
	}
	events, whole, err := o.events(ctx, t)
	if err != nil {
		return "", err
	}
	note := ""
	if !whole {
		note = "\n(There is more than could be searched, or it is not kept.)"
	}
	room := recall.Room{Tokens: eventTokens, Count: o.engine.o.Tokens.Counter("").Text}
	if !named {
		return recall.Lines(events, query, room) + note, nil
	}
	wanted := slices.DeleteFunc(events, func(e recall.Event) bool {
		at, ok := recall.ParseSpan(e.ID)
		return !ok || at.First < span.First || at.First > min(span.Last, span.First+maxEvents)
	})
	if len(wanted) == 0 {
		return fmt.Sprintf("That event is not there. There are events 1 to %d.%s", t.Len, note), nil
	}
	return recall.Whole(wanted, room), nil
}

// events returns the messages of a thread, those that it shares with its parents first. It reports whether all could be read.
func (o *Owned) events(ctx context.Context, t *session.Thread) (all []recall.Event, whole bool, err error) {
	var logged []session.Event
	whole = true
	for upTo := t.Len; t != nil; {
		own, complete, err := o.log(ctx, t, upTo)
		if err != nil {
			return nil, false, err
		}
		logged, whole = append(own, logged...), whole && complete
		if upTo = t.ForkAt; upTo == 0 || t.Parent == "" {
			break
		}
		parent, err := o.store.Thread(ctx, t.Parent)
		if errors.Is(err, session.ErrNotFound) {
			whole = false
			break
		}
		if err != nil {
			return nil, false, fmt.Errorf("read thread: %w", err)
		}
		t = &parent
	}
	if err := session.ReadContent(ctx, o.store, logged, maxRecalled); err != nil {
		whole = false
	}
	d := o.engine.settings.Load().dialect(t.Dialect)
	if d == nil {
		return nil, false, nil
	}
	for i := range logged {
		e := &logged[i]
		content, err := d.Read(e.Payload)
		if len(e.Payload) == 0 || err != nil {
			whole = false
			continue
		}
		all = append(all, recall.NewEvent(recall.EventID(e.Pos, 0), e.Kind, content))
	}
	return all, whole, nil
}

// logPage is how many entries of a log are read at a time.
const logPage = 500

// log reads a thread's own messages up to a position.
func (o *Owned) log(ctx context.Context, t *session.Thread, upTo int) (messages []session.Event, whole bool, err error) {
	read := 0
	for at := uint64(1); at <= t.Seq && read < maxRecalled; {
		page, err := o.store.Events(ctx, t.ID, at, logPage)
		if err != nil {
			return nil, false, fmt.Errorf("read log: %w", err)
		}
		if len(page) == 0 {
			return messages, true, nil
		}
		for i := range page {
			if e := page[i]; e.Pos > 0 && e.Pos <= upTo {
				messages = append(messages, e)
				read += len(e.Payload)
			}
		}
		at = page[len(page)-1].Seq + 1
	}
	return messages, read < maxRecalled, nil
}
