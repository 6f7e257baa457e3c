package replay

import (
	"fmt"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/replay/missing"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func messagesOf(texts ...string) (all []session.Message) {
	for _, text := range texts {
		all = append(all, session.Message{Raw: []byte(text)})
	}
	return all
}

// TestMissing: a name is missing if it stood in an earlier message and stands in nothing that was shown: neither in an original message, nor in
// a line of the proxy's with half of the words of its own line.
func TestMissing(t *testing.T) {
	plain := func(raw []byte) []byte { return raw }
	s := newSources()
	var all []part
	for _, text := range []string{`"a first task"`, `"see shop/cart.go for the sum of prices\nand order_total too\n"`, `"nothing here"`, `"later: user_name"`} {
		all = append(all, partOf([]byte(text)))
	}
	s.learn(all)
	action := missing.Names(`{"path":"shop/cart.go","query":"order_total","other":"new_thing","then":"user_name","word":"nothing"}`)
	for _, c := range []struct {
		shown []session.Message
		want  string
	}{
		{messagesOf(s.texts[:3]...), "2 named, 0 missing"},
		{messagesOf(s.texts[0], s.texts[2]), "2 named, 2 missing"},
		{messagesOf(s.texts[0], `"names: shop/cart.go order_total too\n"`), "2 named, 1 missing"}, // a list has few words of the long line
		{messagesOf(s.texts[0], `"- see shop/cart.go for the sum\n- and order_total too"`), "2 named, 0 missing"},
		{messagesOf(s.texts[0], `"- of the long line: shop/cart.go"`), "2 named, 2 missing"},
		{messagesOf(s.texts[3]), "2 named, 2 missing"}, // not sent yet
	} {
		named, gone := s.look(action, 3, c.shown, plain)
		if got := fmt.Sprintf("%d named, %d missing", named, gone); got != c.want || named != s.named(action, 3) {
			t.Errorf("%d shown: %s, want %s", len(c.shown), got, c.want)
		}
	}
}
