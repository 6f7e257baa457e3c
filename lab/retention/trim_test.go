package retention

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func TestTrims(t *testing.T) {
	r := opened(t, recorded(
		[]json.RawMessage{text("system", "You are an agent."), text("user", "Begin")},
		exchange("call_a", "ls", "short"),
		exchange("call_b", "ls", strings.Repeat("a long line of output\n", 40)),
		exchange("call_c", "ls", "short again"),
		exchange("call_d", "ls", strings.Repeat("another long line of output\n", 40)),
		[]json.RawMessage{text("assistant", "Done")},
	))
	trims := r.trims(200)
	var at []int
	for _, trim := range trims {
		at = append(at, trim.Pos)
	}
	if fmt.Sprint(at) != "[5 9]" { // positions: the user is 1, the results of b and d are 5 and 9
		t.Fatalf("trimmed %v", at)
	}
	m := r.moment(8, 0)
	first := m.trimmed(nil, trims)
	if len(first) != 1 || len(first[0].Trims) != 1 {
		t.Fatalf("at message 8: %+v", first)
	}
	m = r.moment(len(r.messages)-1, 0)
	second := m.trimmed(first, trims)
	if len(second) != 2 || second[1].Trims[0].Pos != 9 {
		t.Fatalf("at the end: %+v", second)
	}
	v := session.Project(m.history, second)
	s := m.show(&v)
	if len(s.texts) != 2 || s.whole[5] || s.whole[9] || !s.whole[7] {
		t.Errorf("shows %v and %d texts", s.whole, len(s.texts))
	}
	if again := m.trimmed(second, trims); len(again) != 2 {
		t.Errorf("trimmed again: %+v", again)
	}
}
