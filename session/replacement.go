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

// A replacement records that the proxy removed the calls of its own tools from an answer before the client received it, and which messages
// replace that answer upstream: the answer with the calls, and their results. It is logged as a Condensation. Its Prefix and Hash identify
// the history that ends with the answer as the client sends it back, in the positions from Offset to Prefix. It hides nothing, and
// condensations do not build on it.

// Replacement holds the messages that replace an answer upstream.
type Replacement struct {
	From     int // position of the answer's first message
	Messages [][]byte
}

// IsReplacement reports whether c is a replacement rather than a condensation.
func (c *Condensation) IsReplacement() bool { return c.Reason == ReasonReplacement }

// Listed returns the condensations followed by the replacements.
func (t *Lists) Listed() []Condensation { return slices.Concat(t.Condensations, t.Replacements) }

// SetListed sets the condensations and the replacements from one list.
func (t *Lists) SetListed(all []Condensation) {
	t.Condensations, t.Replacements = nil, nil
	for _, c := range all {
		if c.IsReplacement() {
			t.Replacements = append(t.Replacements, c)
		} else {
			t.Condensations = append(t.Condensations, c)
		}
	}
}

// Replace logs the messages that replace the answer to the resolution's history, which must have been appended. answer is
// the answer as the client will send it back, in one or several messages.
func (r *Registry) Replace(ctx context.Context, res *Resolution, answer []Message, messages [][]byte) error {
	h, text := res.query.History, Joined(messages)
	c := Condensation{
		Prefix: h.Len() + len(answer), Hash: h.Head(), Offset: h.Len() + 1, Summary: text, Reason: ReasonReplacement, Time: time.Now(),
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

// maxReplacementReads is how many replacements are read concurrently when a replica sees a thread for the first time.
const maxReplacementReads = 8

// Replacements returns the replacements that apply to the resolution's history, keyed by the position of the answer's last message. If an
// answer has two, the newer one applies. A replacement whose text is lost or unreadable does not apply. Replacements adds the number of
// unreadable ones to res.Unreadable.
func (r *Registry) Replacements(ctx context.Context, res *Resolution) (map[int]Replacement, error) {
	all := res.Thread.Replacements
	if len(all) == 0 {
		return nil, nil
	}
	texts, errs := make([]string, len(all)), make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(maxReplacementReads)
	for i, c := range all {
		if res.query.History.Covers(c.Prefix, c.Hash) {
			group.Go(func() error {
				texts[i], errs[i] = r.summary(ctx, res.Thread.ID, &c)
				return nil
			})
		}
	}
	_ = group.Wait() // each error is in errs
	found := map[int]Replacement{}
	for i, c := range all {
		err := errs[i]
		if errors.Is(err, ErrUnreadable) {
			res.Unreadable++
		} else if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("read hidden calls: %w", err)
		}
		if messages := Parted[[]byte](texts[i]); messages != nil {
			found[c.Prefix] = Replacement{From: cmp.Or(c.Offset, c.Prefix), Messages: messages}
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

// Parted decodes a text that Joined encoded from parts that are not empty. It returns nil for an empty list and for any other text.
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
