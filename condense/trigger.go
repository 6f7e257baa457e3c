package condense

import (
	"math"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Settings are what all rolling condensers share: when to condense, and how much to keep.
type Settings struct {
	MaxSize         int     // events a view may have; 0: any number
	MinTokens       int     // of the history's messages; below them MaxSize does nothing
	MaxTokens       float64 // tokens a request may have; up to 1: a share of the model's window; 0: any number
	Margin          int     // tokens left free below the model's window
	KeepFirst       int     // messages at the beginning that stay, system messages not counted
	MinimumProgress float64 // share of the view that has to go for a condensation to be worth while; 0: anything
	BackgroundAt    float64 // share of a limit at which a condensation is prepared; 0: none is

	Economics *Economics // prices by which a condensation is due, too; nil: none is
}

// Due says that a condensation is due, why, and what the view is to shrink to.
type Due struct {
	Need   Need         // the most pressing reason; hard if any reason is: the window is in danger
	Target session.Size // tokens are those of messages alone; unlimited where a dimension does not matter
	Events bool         // the number of events is one of the reasons
	Tokens bool         // the number of tokens is one of the reasons
	Kept   Kept         // KeptLoop: something would be due, but has to wait for the end of a tool loop
}

// unlimited is a target that everything meets.
const unlimited = math.MaxInt

// Due decides whether a condensation is due. Each limit that is exceeded asks for half of itself, and all of them must be
// met, so the most aggressive one wins. What was asked for from outside while no limit is exceeded asks for half of what
// is there.
func (s Settings) Due(in Input) Due {
	d := Due{Target: session.Size{Events: unlimited, Tokens: unlimited}}
	if s.limits(in, &d); in.Need.Reason != "" {
		d.ask(in)
	}
	d.Need.AtOnce = in.Need.AtOnce
	if d.Need.Reason != "" && !d.Need.Hard && in.Waits() {
		return Due{Target: session.Size{Events: unlimited, Tokens: unlimited}, Kept: KeptLoop}
	}
	return d
}

// limits is what is due for a limit that is exceeded, or will be soon. What is asked to be kept is then less by what may still come, so
// that as much goes as if it were due by then.
func (s Settings) limits(in Input, d *Due) {
	share := 1.0
	if in.Need.Spares {
		s = Settings{Margin: s.Margin}
	}
	if in.Need.Ahead {
		if share = s.BackgroundAt; share == 0 {
			return
		}
	}
	over := func(n, limit int) (room int, due bool) {
		if in.Need.Ahead {
			room = limit - n
		}
		return room, limit > 0 && float64(n) > share*float64(limit)
	}
	if target, due := s.economic(in, share); due {
		d.tokens(Need{Reason: session.ReasonEconomics}, target)
	}
	if room, due := over(len(in.View.Items), s.MaxSize); due && in.Total-in.Fixed >= s.MinTokens {
		d.events(session.ReasonEvents, s.MaxSize/2-room)
	}
	limit := s.tokenLimit(in.Window)
	if room, due := over(in.Total, limit); due {
		d.tokens(Need{Reason: session.ReasonTokens}, limit/2-in.Fixed-room)
	}
	limit = s.windowLimit(in)
	if room, due := over(in.Total, limit); due {
		d.tokens(Need{Reason: session.ReasonWindow, Hard: !in.Need.Ahead}, s.windowTarget(in, limit)-in.Fixed-room)
	}
}

func (d *Due) events(reason session.Reason, target int) {
	d.Need.Reason, d.Events = reason, true
	d.Target.Events = min(d.Target.Events, max(target, 0))
}

func (d *Due) tokens(need Need, target int) {
	d.Need, d.Tokens = need, true
	d.Target.Tokens = min(d.Target.Tokens, max(target, 0))
}

// ask adds what was asked for from outside. An overflow is about tokens, whatever else is due.
func (d *Due) ask(in Input) {
	nothing := !d.Events && !d.Tokens
	if nothing {
		d.events(in.Need.Reason, len(in.View.Items)/2)
	}
	if nothing || in.Need.Reason == session.ReasonOverflow && !d.Tokens {
		d.Tokens = true
		d.Target.Tokens = max(in.Total-in.Fixed, 0) / 2
	}
	d.Need.Hard, d.Need.Try = d.Need.Hard || in.Need.Hard, in.Need.Try
	switch in.Need.Reason {
	case session.ReasonRequest, session.ReasonOverflow: // more pressing than any limit
		d.Need.Reason = in.Need.Reason
	}
}

// tokenLimit is MaxTokens in tokens, 0 if there is no limit or it is a share of a window that is not known.
func (s Settings) tokenLimit(window int) int {
	if s.MaxTokens <= 1 {
		return int(s.MaxTokens * float64(window))
	}
	return int(min(s.MaxTokens, math.MaxInt32))
}

// windowLimit is what the model's window leaves for the request. Of the tokens reserved for the answer no more than half
// the window counts: a max_tokens that large is not cured by a smaller history.
func (s Settings) windowLimit(in Input) int {
	return in.Window - min(in.Reserved, in.Window/2) - s.Margin
}

// windowTarget is half of the limit, or less where the reserved answer leaves less.
func (s Settings) windowTarget(in Input, limit int) int {
	if room := in.Window - in.Reserved - s.Margin; room > 0 {
		return min(limit/2, room)
	}
	return limit / 2
}
