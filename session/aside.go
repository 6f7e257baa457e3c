package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// An aside records that the client received an answer without its calls of the proxy's own tools, and which messages
// replace that answer upstream: the calls with their results. It is logged as a Condensation and, like one, is identified
// by the history that it ends: the answer, as the client sends it back, is the last messages of its Prefix, from its Offset
// on. It hides nothing, and condensations do not build on it.

// Instead holds the messages that replace an answer upstream.
type Instead struct {
	From     int // position of the answer's first message
	Messages [][]byte
}

// Aside reports whether c is an aside rather than a condensation.
func (c *Condensation) Aside() bool { return c.Reason == ReasonAside }

// Listed returns the condensations and the asides in one list.
func (t *Lists) Listed() []Condensation { return slices.Concat(t.Condensations, t.Asides) }

// SetListed sets the condensations and the asides from one list.
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

// SetAside logs the messages that replace the answer to the resolution's history, which must have been appended. answer is
// the answer as the client will send it back, in one or several messages.
func (r *Registry) SetAside(ctx context.Context, res *Resolution, answer []Message, messages [][]byte) error {
	h, text := res.query.History, Joined(messages)
	c := Condensation{
		Prefix: h.Len() + len(answer), Hash: h.Head(), Offset: h.Len() + 1, Summary: text, Reason: ReasonAside, Time: time.Now(),
	}
	for i := range answer {
		c.Hash = Next(c.Hash, answer[i].Digest)
	}
	c, err := r.store.Condense(ctx, res.Thread.ID, c)
	if err != nil {
		return fmt.Errorf("log hidden calls: %w", err)
	}
	r.summaries.Add(summaryKeyOf(&c), text)
	return nil
}

// maxAsideReads is how many asides are read concurrently when a replica sees a thread for the first time.
const maxAsideReads = 8

// Asides returns the asides that apply to the resolution's history, keyed by the position of the answer's last message. If
// an answer has two, the newer one counts. An aside whose text is lost or unreadable does not apply.
func (r *Registry) Asides(ctx context.Context, res *Resolution) (map[int]Instead, error) {
	all := res.Thread.Asides
	if len(all) == 0 {
		return nil, nil
	}
	texts, errs := make([]string, len(all)), make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(maxAsideReads)
	for i, c := range all {
		if res.query.History.Covers(c.Prefix, c.Hash) {
			group.Go(func() error {
				texts[i], errs[i] = r.summary(ctx, res.Thread.ID, &c)
				return nil
			})
		}
	}
	_ = group.Wait() // each error is in errs
	found := map[int]Instead{}
	for i, c := range all {
		err := errs[i]
		if errors.Is(err, ErrUnreadable) {
			res.Unreadable++
		} else if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("read hidden calls: %w", err)
		}
		if messages := Parted[[]byte](texts[i]); messages != nil {
			found[c.Prefix] = Instead{From: cmp.Or(c.Offset, c.Prefix), Messages: messages}
		}
	}
	return found, nil
}

// Joined encodes parts as one text, each part preceded by its length and a colon.
func Joined[T ~string | ~[]byte](parts []T) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%d:%s", len(p), p)
	}
	return b.String()
}

// Parted decodes what Joined encoded. It returns nil for an empty list and for any other text. Parts must not be empty.
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
