package condensetest

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func said(role, text string) session.Message { return Message(session.Content{Role: role, Text: text}) }

func called(sealed bool, ids ...string) session.Message {
	c := session.Content{Role: "assistant"}
	for _, id := range ids {
		c.Calls = append(c.Calls, session.Call{ID: id, Name: "run"})
	}
	m := Message(c)
	m.Sealed = sealed
	return m
}

func answered(id string) session.Message {
	return Message(session.Content{Role: "tool", Result: id, Text: "result of " + id})
}

// TestCheckFinds checks that View reports every defect of a view.
func TestCheckFinds(t *testing.T) {
	h := []session.Message{
		said("system", "be good"), said("user", "one"), called(false, "a", "b"), answered("a"), answered("b"), // 0-4
		called(true, "c"), answered("c"), said("system", "midnight"), called(false, "d"), answered("d"), // 5-9
		said("user", "two"), called(false, "e"), said("assistant", "between"), answered("e"), said("assistant", "end"), // 10-14
	}
	for name, c := range map[string]struct {
		keep []int // -1 is a summary
		ok   bool
	}{
		"all":                 {[]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, true},
		"a good cut":          {[]int{0, 1, -1, 7, 10, 11, 12, 13, 14}, true},
		"no system":           {[]int{1, -1, 7, 10, 14}, false},
		"no inner system":     {[]int{0, 1, -1, 10, 14}, false},
		"no newest user":      {[]int{0, 1, -1, 7, 14}, false},
		"no last":             {[]int{0, 1, -1, 7, 10}, false},
		"half a unit":         {[]int{0, 1, 2, 3, -1, 7, 10, 14}, false},
		"result without call": {[]int{0, 1, -1, 4, 7, 10, 14}, false},
		"late result gone":    {[]int{0, 1, -1, 7, 10, 11, 14}, false},
		"summary in a unit":   {[]int{0, 1, 2, -1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, false},
		"summary in a pair":   {[]int{0, 1, 7, 10, 11, -1, 12, 13, 14}, false},
		"two summaries":       {[]int{0, 1, -1, -1, 7, 10, 14}, false},
		"wrong order":         {[]int{0, 1, 7, 14, 10}, false},
		"twice":               {[]int{0, 1, 1, 7, 10, 14}, false},
	} {
		v := session.View{History: session.NewHistory(session.Hash{}, h)}
		for _, i := range c.keep {
			if i < 0 {
				v.Items = append(v.Items, session.Item{Index: -1, Summary: "summary", Kind: session.User})
				continue
			}
			v.Items = append(v.Items, session.Item{Index: i, Raw: h[i].Raw, Kind: h[i].Kind})
		}
		if err := View(&v); (err == nil) != c.ok {
			t.Errorf("view, %s: %v", name, err)
		}
	}
}

// TestUnseen checks that Unseen reports a result that is missing although the model has not seen it.
func TestUnseen(t *testing.T) {
	h := []session.Message{said("user", "one"), called(false, "a"), answered("a"), called(false, "b"), answered("b"), said("user", "two")}
	v := session.View{History: session.NewHistory(session.Hash{}, h)}
	for _, i := range []int{0, 5} {
		v.Items = append(v.Items, session.Item{Index: i, Raw: h[i].Raw, Kind: h[i].Kind})
	}
	if Unseen(&v) == nil {
		t.Error("the newest result is not missed")
	}
}

// TestShapedFinds checks that only tool results that a model has answered may have shorter content.
func TestShapedFinds(t *testing.T) {
	h := []session.Message{said("user", "one two three"), called(false, "a"), answered("a"), called(false, "b"), answered("b")}
	masked := func(id string) session.Message { return Message(session.Content{Role: "tool", Result: id, Text: "x"}) }
	for name, c := range map[string]struct {
		at   int
		by   session.Message
		trim *session.Trim
		ok   bool
	}{
		"masked":        {2, masked("a"), nil, true},
		"grown":         {2, Message(session.Content{Role: "tool", Result: "a", Text: "result of a and more"}), nil, false},
		"another id":    {2, masked("b"), nil, false},
		"another role":  {2, Message(session.Content{Role: "user", Result: "a", Text: "x"}), nil, false},
		"no result":     {0, said("user", "x"), nil, false},
		"not answered":  {4, masked("b"), nil, false},
		"trimmed":       {4, masked("b"), &session.Trim{Pos: 5}, true},
		"not a message": {2, session.Message{Raw: []byte("x")}, nil, false},
	} {
		v := session.Project(session.NewHistory(session.Hash{}, h), nil)
		v.Items[c.at].Raw, v.Items[c.at].Trim = c.by.Raw, c.trim
		if err := Shaped(&v); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTrimsFound checks condensations that only trim.
func TestTrimsFound(t *testing.T) {
	history := session.NewHistory(session.Hash{}, []session.Message{said("user", "one"), called(false, "a", "b"), answered("a"), answered("b")})
	v := session.Project(history, nil)
	v.Items[3].Trim = &session.Trim{Pos: 4, Head: 1}
	for name, c := range map[string]struct {
		trims  []session.Trim
		prefix int
		ok     bool
	}{
		"good":           {[]session.Trim{{Pos: 3, Head: 2, Tail: 2}}, 3, true},
		"again":          {[]session.Trim{{Pos: 4, Head: 2, Tail: 2}}, 4, false},
		"no result":      {[]session.Trim{{Pos: 1, Head: 1, Tail: 1}}, 3, false},
		"nothing":        {[]session.Trim{{Pos: 3, Head: 20, Tail: 20}}, 3, false},
		"short prefix":   {[]session.Trim{{Pos: 3, Head: 2, Tail: 2}}, 2, false},
		"twice":          {[]session.Trim{{Pos: 3, Head: 2, Tail: 2}, {Pos: 3, Head: 1, Tail: 1}}, 3, false},
		"nothing at all": {nil, 3, false},
	} {
		condensation := session.Condensation{
			Trims: c.trims, Prefix: c.prefix, Hash: history.Chain[c.prefix], Before: session.Size{Events: 4, Tokens: 9}, After: session.Size{Events: 4, Tokens: 8},
		}
		if err := Condensation(&v, condensation); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChangedMessageIsFound(t *testing.T) {
	h := []session.Message{said("user", "one"), said("assistant", "two")}
	v := session.Project(session.NewHistory(session.Hash{}, h), nil)
	v.Items[1].Raw = said("assistant", "changed").Raw
	if View(&v) == nil {
		t.Error("not found")
	}
}

// TestCondensationFinds checks that every defect of a condensation is reported.
func TestCondensationFinds(t *testing.T) {
	var h []session.Message
	for range 9 {
		h = append(h, said("assistant", "text"))
	}
	history := session.NewHistory(session.Hash{}, h)
	first := session.Condensation{Prefix: 2, Hash: history.Chain[2], Forgotten: []session.Range{{From: 2, To: 3}}, Summary: "s", Offset: 2}
	v := session.Project(history, []session.Condensation{first})
	good := session.Condensation{
		Prefix: 6, Hash: history.Chain[6], Forgotten: []session.Range{{From: 3, To: 5}, {From: 6, To: 7}}, Offset: 2,
		Before: session.Size{Events: 9, Tokens: 90}, After: session.Size{Events: 6, Tokens: 60},
	}
	for name, c := range map[string]struct {
		change func(*session.Condensation)
		ok     bool
	}{
		"good":         {func(*session.Condensation) {}, true},
		"nothing":      {func(c *session.Condensation) { c.Forgotten = nil }, false},
		"empty range":  {func(c *session.Condensation) { c.Forgotten = []session.Range{{From: 3, To: 3}} }, false},
		"twice":        {func(c *session.Condensation) { c.Forgotten[0].From = 2 }, false},
		"descending":   {func(c *session.Condensation) { c.Forgotten = []session.Range{{From: 6, To: 7}, {From: 3, To: 5}} }, false},
		"past the end": {func(c *session.Condensation) { c.Forgotten[1].To = 99 }, false},
		"short prefix": {func(c *session.Condensation) { c.Prefix, c.Hash = 5, history.Chain[5] }, false},
		"wrong hash":   {func(c *session.Condensation) { c.Hash = history.Chain[5] }, false},
		"offset":       {func(c *session.Condensation) { c.Offset = 4 }, false},
		"not smaller":  {func(c *session.Condensation) { c.After.Tokens = 90 }, false},
	} {
		changed := good
		changed.Forgotten = append([]session.Range(nil), good.Forgotten...)
		c.change(&changed)
		if err := Condensation(&v, changed); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
