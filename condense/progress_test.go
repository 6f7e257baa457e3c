package condense_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// crowded returns a history above 6,000 tokens in which little can be hidden: the user's first message stays, and what the user
// typed after it, in messages of about 100 tokens, is quoted next to a record.
func crowded(typed int) *session.History {
	say := func(role, text string) session.Message {
		return condensetest.Message(session.Content{Role: role, Text: text})
	}
	messages := []session.Message{say("user", strings.Repeat("The task is long. ", 1280))}
	for n := range typed {
		messages = append(messages, say("user", fmt.Sprintf("%d is a rule.", n)+strings.Repeat(fmt.Sprintf(" It has reasons (%d).", n), 18)))
	}
	return session.NewHistory(session.Hash{}, append(messages, say("assistant", "noted"), say("user", "go on")))
}

// TestMinimumProgress checks that no condensation with its record hides less than the minimum progress, unless it is needed
// urgently: excerpts may have to quote most of what they hide, and a model may write a record that is nearly as long.
func TestMinimumProgress(t *testing.T) {
	settings := condense.Settings{MaxTokens: 6000, KeepFirst: 1, MinimumProgress: 0.1}
	wordy := condense.NewLLM(condense.LLMSettings{Settings: settings, Summariser: summariserFunc(
		func(context.Context, condense.Request) (condense.Reply, error) {
			return condense.Reply{Text: "CURRENT_STATE: " + strings.Repeat("and so on and on", 175), Finish: "stop"}, nil
		})})
	for _, c := range []condense.Condenser{condense.Excerpts{Settings: settings}, wordy} {
		t.Run(c.Name(), func(t *testing.T) {
			refused, urgent, replaced := 0, 0, 0
			for typed := 4; typed < 24; typed++ {
				v := session.Project(crowded(typed), nil)
				in := input(&v)
				d := c.Condense(in)
				if d.Job == nil {
					continue
				}
				r, err := d.Job.Run(t.Context())
				made := r.Condensation
				if err == nil && made.After.Tokens > made.Before.Tokens*9/10 {
					t.Errorf("%d messages: %d tokens, before %d", typed, made.After.Tokens, made.Before.Tokens)
				}
				if err == nil {
					continue
				}
				refused++
				if cause := condense.Cause(err); cause != map[string]string{"excerpts": "uncut", "llm": "inflated"}[c.Name()] {
					t.Errorf("%d messages: %s, %v", typed, cause, err)
				}
				in.Need = condense.Need{Reason: session.ReasonRequest, Hard: true}
				if r, err := c.Condense(in).Job.Run(t.Context()); err == nil && r.Condensation.After.Tokens < r.Condensation.Before.Tokens {
					urgent++
				}
				in.Need.AtOnce = true
				if r, err := c.Condense(in).Job.Run(t.Context()); err == nil && r.Later != nil {
					if _, err := r.Later.Run(t.Context()); err == nil {
						replaced++
					}
				}
			}
			if refused == 0 || urgent == 0 {
				t.Errorf("%d condensations are refused, %d of them made if urgent", refused, urgent)
			}
			if c.Name() == wordy.Name() && replaced == 0 {
				t.Error("no summary replaces the excerpts that were made at once")
			}
		})
	}
}
