package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// An aside says that an answer went to the client without the calls of tools that are the proxy's own, and what stands in the place of
// that answer upstream: the calls with their results. It is logged and named as condensations are, by the history that it ends: the
// answer as the client sends it back is the last messages of its Prefix, from its Offset on. It hides nothing, and condensations do not
// build on it.

// Instead is what stands in the place of an answer upstream.
type Instead struct {
	From     int // position of the answer's first message
	Messages [][]byte
}

// Aside reports whether c is none, but an aside.
func (c *Condensation) Aside() bool { return c.Reason == ReasonAside }

// Listed is all of them.
func (t *Lists) Listed() []Condensation { return slices.Concat(t.Condensations, t.Asides) }

// SetListed takes what Listed has given.
func (t *Lists) SetListed(all []Condensation) {
	t.Condensations, t.Asides = nil, nil
	for _, c := range all {
		if c.Aside() {
			t.Asides = append(t.Asides, c)
		} else {
			t.Condensations = append(t.Condensations, c)
		}
	}
}

// SetAside logs the messages that stand in the place of the answer to a resolution's history, which must have been appended. The answer is given as
// the client will send it back, in one message or several.
func (r *Registry) SetAside(ctx context.Context, res *Resolution, answer []Message, messages [][]byte) error {
	h, text := res.query.History, Joined(messages)
	c := Condensation{
		Prefix: h.Len() + len(answer), Hash: h.Head(), Offset: h.Len() + 1, Summary: text, Reason: ReasonAside, Time: r.now(),
	}
	for i := range answer {
		c.Hash = next(c.Hash, answer[i].Digest)
	}
	c, err := r.store.Condense(ctx, res.Thread.ID, c)
	if err != nil {
		return fmt.Errorf("log hidden calls: %w", err)
	}
	r.summaries.Add(named(&c), text)
	return nil
}

// asidesAtOnce is how many are read at once where a replica sees a thread for the first time.
const asidesAtOnce = 8

// Asides gives what the asides say that apply to a resolution's history, by the position of the answer's last message. Of two for one
// answer the newer counts. One that is lost or cannot be read does not apply.
func (r *Registry) Asides(ctx context.Context, res *Resolution) (map[int]Instead, error) {
	all := res.Thread.Asides
	if len(all) == 0 {
		return nil, nil
	}
	texts, errs := make([]string, len(all)), make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(asidesAtOnce)
	for i, c := range all {
		if res.query.History.Covers(c.Prefix, c.Hash) {
			group.Go(func() error {
				texts[i], errs[i] = r.summary(ctx, res.Thread.ID, &c)
				return nil
			})
		}
	}
	_ = group.Wait()
	found := map[int]Instead{}
	for i, c := range all {
		switch err := errs[i]; {
		case errors.Is(err, ErrUnreadable):
			res.Unreadable++
		case err != nil && !errors.Is(err, ErrNotFound):
			return nil, fmt.Errorf("read hidden calls: %w", err)
		}
		if messages := Parted[[]byte](texts[i]); messages != nil {
			found[c.Prefix] = Instead{From: cmp.Or(c.Offset, c.Prefix), Messages: messages}
		}
	}
	return found, nil
}

// asidesOf are those that hold for a history which shares its first messages up to a position.
func asidesOf(h *History, all []Condensation, same int) (out []Condensation) {
	for _, c := range all {
		if c.Prefix <= same && h.Covers(c.Prefix, c.Hash) {
			out = append(out, c)
		}
	}
	return out
}

// Joined is parts as one text, each behind its length.
func Joined[T ~string | ~[]byte](parts []T) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%d:%s", len(p), p)
	}
	return b.String()
}

// Parted gives what Joined was given, nil if it was nothing or the text is another one. No part is empty.
func Parted[T ~string | ~[]byte](text string) (parts []T) {
	for text != "" {
		size, rest, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(size)
		if err != nil || n <= 0 || n > len(rest) {
			return nil
		}
		parts, text = append(parts, T(rest[:n])), rest[n:]
	}
	return parts
}
