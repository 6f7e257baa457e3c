package retention

import (
	"encoding/json"
	"reflect"
	"testing"
)

// hand is a run whose last action uses: src/alpha.go (message 3), parse_args (3 and 5), 4821 (7, the latest exchange),
// beta.txt (named by the user in the head: it does not count) and new_name (named nowhere before).
func hand() *run {
	r, err := newRun(recorded(
		[]json.RawMessage{text("system", "You are an agent."), text("user", "Look at beta.txt now")},
		exchange("call_a", "ls", "in src/alpha.go the function parse_args is defined on top"),
		exchange("call_b", "ls", "parse_args fails"),
		exchange("call_c", "ls", "ticket 4821"),
		[]json.RawMessage{text("assistant", "src/alpha.go has parse_args for 4821, not beta.txt but new_name")},
	), wordCounter{})
	if err != nil {
		panic(err)
	}
	return r
}

func handMoment(t *testing.T) *moment {
	t.Helper()
	r := hand()
	all := r.moments(1, 1, 100, (*moment).refers)
	m := all[len(all)-1]
	if m.at != 8 {
		t.Fatalf("the last moment is at %d", m.at)
	}
	return m
}

func TestUses(t *testing.T) {
	m := handMoment(t)
	got := map[string][]int{}
	memory := map[string]bool{}
	for _, u := range m.used {
		got[u.text], memory[u.text] = u.where, u.memory
	}
	if want := map[string][]int{"src/alpha.go": {3}, "parse_args": {3, 5}, "4821": {7}}; !reflect.DeepEqual(got, want) {
		t.Errorf("uses %v, want %v", got, want)
	}
	if want := map[string]bool{"src/alpha.go": true, "parse_args": true, "4821": false}; !reflect.DeepEqual(memory, want) {
		t.Errorf("memory %v, want %v", memory, want)
	}
}

func TestScore(t *testing.T) {
	tests := map[string]struct {
		whole []int
		texts []string
		want  Counts
	}{
		"all of it":                  {whole: []int{0, 1, 2, 3, 4, 5, 6, 7}, want: Counts{Kept: 3, Recalled: 2, Context: 2}},
		"the latest exchange":        {whole: []int{0, 1, 6, 7}, want: Counts{Kept: 1}},
		"the shorter of two sources": {whole: []int{5, 7}, want: Counts{Kept: 2, Recalled: 1, Context: 1}},
		// "parse_args fails" is 2 words, one of them is half; "in src/alpha.go the ... top" is 11 words
		"names in a list": {whole: []int{7}, texts: []string{"names: src/alpha.go, parse_args"},
			want: Counts{Kept: 3, Recalled: 2, Context: 1}},
		"half of a line": {whole: []int{7}, texts: []string{"in src/alpha.go the function parse_args"},
			want: Counts{Kept: 3, Recalled: 2, Context: 2}},
		"half of a line, on two lines": {whole: []int{7}, texts: []string{"in src/alpha.go\nthe function is defined on top"},
			want: Counts{Kept: 2, Recalled: 1}},
		"a part of a longer name": {texts: []string{"src/alpha.goo and re_parse_args"}, want: Counts{}},
	}
	m := handMoment(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := shown{whole: make([]bool, m.at), texts: test.texts, tokens: 10}
			for _, i := range test.whole {
				s.whole[i] = true
			}
			want := test.want
			want.Moments, want.Used, want.Memory, want.Share = 1, 3, 2, 10/float64(m.total)
			if got := m.score(s, 10); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if m.score(s, 9).Over != 1 {
				t.Error("10 tokens are not over a budget of 9")
			}
		})
	}
}

func TestRatios(t *testing.T) {
	c := Counts{Used: 8, Kept: 6, Memory: 4, Recalled: 2, Context: 1, Far: 8, FarRecalled: 1}
	for i, want := range []float64{0.75, 0.5, 0.25, 0.125} {
		if got := metrics()[i].ratio(c); got != want {
			t.Errorf("%s is %v, want %v", metrics()[i].name, got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	all := make([]*moment, 10)
	for i := range all {
		all[i] = &moment{at: i}
	}
	for limit, want := range map[int][]int{1: {0}, 2: {0, 9}, 4: {0, 3, 6, 9}, 20: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}} {
		var got []int
		for _, m := range spread(all, limit) {
			got = append(got, m.at)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d of 10: %v, want %v", limit, got, want)
		}
	}
}
