package condense_test

import (
	"math"
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func TestDue(t *testing.T) {
	const any = math.MaxInt
	request := condense.Need{Reason: session.ReasonRequest}
	overflow := condense.Need{Reason: session.ReasonOverflow, Hard: true}
	size := func(events, tokens int) session.Size { return session.Size{Events: events, Tokens: tokens} }
	for name, c := range map[string]struct {
		s      condense.Settings
		in     condense.Input
		events int
		reason session.Reason
		hard   bool
		target session.Size
	}{
		"no limits":         {condense.Settings{}, condense.Input{Total: 1e6}, 1000, "", false, size(any, any)},
		"max events":        {condense.Settings{MaxSize: 10}, condense.Input{}, 10, "", false, size(any, any)},
		"one more event":    {condense.Settings{MaxSize: 10}, condense.Input{}, 11, session.ReasonEvents, false, size(5, any)},
		"max tokens":        {condense.Settings{MaxTokens: 100}, condense.Input{Total: 100}, 3, "", false, size(any, any)},
		"one more token":    {condense.Settings{MaxTokens: 100}, condense.Input{Total: 101, Fixed: 20}, 3, session.ReasonTokens, false, size(any, 40)},
		"fixed above all":   {condense.Settings{MaxTokens: 100}, condense.Input{Total: 101, Fixed: 80}, 3, session.ReasonTokens, false, size(any, 10)},
		"share":             {condense.Settings{MaxTokens: 0.75}, condense.Input{Total: 76, Window: 100}, 3, session.ReasonTokens, false, size(any, 37)},
		"share met":         {condense.Settings{MaxTokens: 0.75}, condense.Input{Total: 75, Window: 100}, 3, "", false, size(any, any)},
		"whole window":      {condense.Settings{MaxTokens: 1}, condense.Input{Total: 100, Window: 100}, 3, "", false, size(any, any)},
		"share of unknown":  {condense.Settings{MaxTokens: 0.75}, condense.Input{Total: 1e6}, 3, "", false, size(any, any)},
		"window":            {condense.Settings{Margin: 10}, condense.Input{Total: 61, Window: 100, Reserved: 30}, 3, session.ReasonWindow, true, size(any, 30)},
		"window met":        {condense.Settings{Margin: 10}, condense.Input{Total: 60, Window: 100, Reserved: 30}, 3, "", false, size(any, any)},
		"reserved too much": {condense.Settings{}, condense.Input{Total: 50, Window: 100, Reserved: 1000}, 3, "", false, size(any, any)},
		"reserved much":     {condense.Settings{}, condense.Input{Total: 60, Window: 100, Reserved: 90}, 3, session.ReasonWindow, true, size(any, 10)},
		"all, most aggressive": {
			condense.Settings{MaxSize: 10, MaxTokens: 100}, condense.Input{Total: 300, Window: 120, Need: request}, 11,
			session.ReasonRequest, true, size(5, 50),
		},
		"request alone":       {condense.Settings{MaxSize: 10}, condense.Input{Total: 110, Fixed: 10, Need: request}, 8, session.ReasonRequest, false, size(4, 50)},
		"request with events": {condense.Settings{MaxSize: 10}, condense.Input{Total: 110, Need: request}, 12, session.ReasonRequest, false, size(5, any)},
		"overflow with events": {
			condense.Settings{MaxSize: 10}, condense.Input{Total: 110, Fixed: 10, Need: overflow}, 12, session.ReasonOverflow, true, size(5, 50),
		},
		"soft request": {
			condense.Settings{}, condense.Input{Total: 110, Need: condense.Need{Reason: "background"}}, 4, "background", false, size(2, 55),
		},
		"soft request with tokens": {
			condense.Settings{MaxTokens: 100}, condense.Input{Total: 110, Need: condense.Need{Reason: "background"}}, 4,
			session.ReasonTokens, false, size(any, 50),
		},
		"for a summary of its own": {
			condense.Settings{MaxSize: 10, MaxTokens: 0.5}, condense.Input{Total: 110, Window: 100, Need: condense.Need{WindowOnly: true}}, 40,
			session.ReasonWindow, true, size(any, 50),
		},
		"for a summary of its own, that fits": {
			condense.Settings{MaxSize: 10, MaxTokens: 0.5}, condense.Input{Total: 100, Window: 100, Need: condense.Need{WindowOnly: true}}, 40, "", false, size(any, any),
		},
		"for a summary of its own, after an overflow": {
			condense.Settings{MaxSize: 10, MaxTokens: 0.5}, condense.Input{
				Total: 110, Need: condense.Need{Reason: session.ReasonOverflow, Hard: true, WindowOnly: true},
			}, 40, session.ReasonOverflow, true, size(20, 55),
		},
		"below the floor": {
			condense.Settings{MaxSize: 10, MinTokens: 100}, condense.Input{Total: 119, Fixed: 20}, 11, "", false, size(any, any),
		},
		"at the floor": {
			condense.Settings{MaxSize: 10, MinTokens: 100}, condense.Input{Total: 120, Fixed: 20}, 11, session.ReasonEvents, false, size(5, any),
		},
		"tokens below the floor": {
			condense.Settings{MaxSize: 10, MinTokens: 200, MaxTokens: 100}, condense.Input{Total: 110}, 11,
			session.ReasonTokens, false, size(any, 50),
		},
	} {
		c.in.View = &session.View{Items: make([]session.Item, c.events)}
		c.in.Measure = func(items []session.Item) []int { return make([]int, len(items)) }
		d := c.s.Due(c.in)
		if d.Need.Reason != c.reason || d.Need.Hard != c.hard || d.Target != c.target {
			t.Errorf("%s: %+v, want %s, hard %v, %+v", name, d, c.reason, c.hard, c.target)
		}
	}
}

// TestSystemMessagesOfEachStep has an agent that adds a system message at each step. These stay, so they must not use up a limit on events.
func TestSystemMessagesOfEachStep(t *testing.T) {
	messages := []session.Message{{Kind: session.System}, {Kind: session.User}}
	for range 20 {
		messages = append(messages, session.Message{Kind: session.Agent}, session.Message{Kind: session.User}, session.Message{Kind: session.System})
	}
	v := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	shown := func(v *session.View) (n int) {
		for _, item := range v.Items {
			if item.Kind != session.System {
				n++
			}
		}
		return n
	}
	in := condense.Input{View: &v, Codec: condensetest.Codec{}}
	if d := (condense.RecentEvents{KeepFirst: 1, MaxEvents: 12}).Condense(in); d.View == nil || shown(d.View) != 11 {
		t.Errorf("recent_events: %+v", d)
	}
	if d := (condense.RecentEvents{KeepFirst: 1, MaxEvents: 42}).Condense(in); d.View != nil {
		t.Errorf("%d of the events that recent_events shows are not system messages", shown(d.View))
	}
	for limit, want := range map[int]session.Reason{42: "", 41: session.ReasonEvents} {
		if d := (condense.Settings{MaxSize: limit}).Due(in); d.Need.Reason != want {
			t.Errorf("at a limit of %d: %+v", limit, d)
		}
	}
}

// TestProgressBesideSystemMessages: however many system messages stay, a condensation that halves the rest is worthwhile.
func TestProgressBesideSystemMessages(t *testing.T) {
	messages := []session.Message{{Kind: session.User}}
	for n := range 1000 {
		if n < 12 {
			messages = append(messages, session.Message{Kind: session.Agent}, session.Message{Kind: session.User})
		}
		messages = append(messages, session.Message{Kind: session.System})
	}
	v := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	in := condense.Input{View: &v, Codec: condensetest.Codec{}, Total: len(messages), Measure: func(items []session.Item) []int {
		return slices.Repeat([]int{1}, len(items))
	}}
	if d := (condense.AmortizedForgetting{Settings: condense.Settings{MaxSize: 20, KeepFirst: 2, MinimumProgress: 0.1}}).Condense(in); d.Job == nil {
		t.Errorf("%+v", d)
	}
}

// TestUnseenFile: a file that the model has not seen stays in front of the user's newest message, unless the request cannot fit with it.
func TestUnseenFile(t *testing.T) {
	messages := []session.Message{
		{Kind: session.User}, {Kind: session.Action, Calls: []string{"a"}}, {Kind: session.Observation, Result: "a", Attached: true}, {Kind: session.User},
	}
	v := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	for tokens, hidden := range map[int]bool{50: false, 300: true} {
		in := condense.Input{View: &v, Codec: condensetest.Codec{}, Total: tokens + 30, Window: 200, Need: condense.Need{Reason: session.ReasonOverflow, Hard: true}}
		in.Measure = func(items []session.Item) []int {
			counts := slices.Repeat([]int{10}, len(items))
			for i := range items {
				if items[i].Kind == session.Observation {
					counts[i] = tokens
				}
			}
			return counts
		}
		if d := (condense.ConversationWindow{}).Condense(in); (d.Job != nil) != hidden {
			t.Errorf("a file of %d tokens: %+v", tokens, d)
		}
	}
}
