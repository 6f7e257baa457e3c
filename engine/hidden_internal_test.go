package engine

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestReplacementIsShownInPlaceOfTheLastMessage: what replaces an answer of two messages is shown in the place of the second, and the first is hidden. If only the first
// is in view, it is shown unchanged.
func TestReplacementIsShownInPlaceOfTheLastMessage(t *testing.T) {
	var messages []session.Message
	for _, kind := range []session.Kind{session.System, session.User, session.Agent, session.Agent, session.User} {
		messages = append(messages, session.Message{Raw: []byte("{}"), Kind: kind})
	}
	turn := &Turn{history: session.NewHistory(session.Hash{}, messages)}
	turn.hidden.replacements = map[int]session.Replacement{3: {From: 2, Messages: [][]byte{[]byte("call"), []byte("result")}}}
	for name, c := range map[string]struct {
		shown []int // indexes; -1: the record
		want  []int // parts of each; -1: the message itself
	}{
		"all":         {[]int{0, 1, 2, 3, 4}, []int{-1, -1, 0, 2, -1}},
		"head":        {[]int{0, 1, 2, -1, 4}, []int{-1, -1, -1, -1, -1}},
		"tail":        {[]int{0, 1, -1, 3, 4}, []int{-1, -1, -1, 2, -1}},
		"both hidden": {[]int{0, 1, -1, 4}, []int{-1, -1, -1, -1}},
	} {
		items := make([]session.Item, len(c.shown))
		for i, index := range c.shown {
			if items[i].Index = index; index >= 0 {
				items[i].Parts = turn.hidden.replacements[turn.history.Pos(index)].Messages
			}
			if index == 2 {
				items[i].Parts = [][]byte{} // as an earlier view had it
			}
		}
		turn.hideReplaced(items)
		for i, item := range items {
			got := len(item.Parts)
			if item.Parts == nil {
				got = -1
			}
			if got != c.want[i] {
				t.Errorf("%s: item %d has %d parts, want %d", name, i, got, c.want[i])
			}
		}
	}
}
