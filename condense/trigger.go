package condense

import (
	"math"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Settings holds what all rolling condensers share: when to condense, and how much to keep.
type Settings struct {
	MaxSize         int     // maximum events in a view; 0: unlimited
	MinTokens       int     // tokens in messages below which MaxSize has no effect
	MaxTokens       float64 // maximum tokens of a request; up to 1: as a share of the model's window; 0: unlimited
	Margin          int     // tokens left free below the model's window
	KeepFirst       int     // number of messages at the beginning that stay, not counting system messages
	MinimumProgress float64 // minimum share of the view that a condensation must hide; 0: any
	BackgroundAt    float64 // share of a limit at which a condensation is prepared; 0: never

	Recite bool // repeat the user's standing rules at the end of the record

	Economics *Economics // prices by which a condensation is due as well; nil: none
}

// Due says whether and why a condensation is due, and the size to which the view must shrink.
type Due struct {
	Need     Need         // the most urgent reason; hard if any reason is, since the window is in danger
	Target   session.Size // tokens count messages only; unlimited in a dimension that is not among the reasons
	Later    session.Size // the target that the same limits will set once the condensation is due, if it is prepared before that
	Obstacle Obstacle     // ObstacleLoop: a condensation is due, but must wait for the end of a tool loop
}

// unlimited is a target that any size meets.
const unlimited = math.MaxInt

// Due decides whether a condensation is due. An exceeded limit of events demands a shrink to half of itself, one of tokens a shrink to what
// limited returns, and prices to what economic returns. All demands must be met, so the strictest wins. A request by the caller while no limit is
// exceeded demands half of the current size.
func (s Settings) Due(in Input) Due {
	none := Due{Target: session.Size{Events: unlimited, Tokens: unlimited}, Later: session.Size{Events: unlimited, Tokens: unlimited}}
	d := none
	s.addLimits(in, &d)
	if in.Need.Reason != "" {
		d.addRequest(in)
	}
	d.Need.AtOnce = in.Need.AtOnce
	if d.Need.Reason != "" && !d.Need.Hard && !in.CutsLoops && in.Loop() > 0 {
		d, d.Obstacle = none, ObstacleLoop
	}
	return d
}

// addLimits adds the demands of limits that are exceeded, or will be soon. In the latter case the target is lowered by the
// tokens that may still be added, so that as much is hidden as if it were due then.
func (s Settings) addLimits(in Input, d *Due) {
	if in.Need.WindowOnly {
		s = Settings{Margin: s.Margin, BackgroundAt: s.BackgroundAt}
	}
	share := 1.0 // of a limit at which it counts as exceeded
	if in.Need.Ahead {
		if share = s.BackgroundAt; share == 0 {
			return
		}
	}
	over := func(n, limit int) (room int, due bool) {
		return max(limit-n, 0), limit > 0 && float64(n) > share*float64(limit)
	}
	if target, due := s.economic(in, share); due {
		d.tokens(Need{Reason: session.ReasonEconomics}, target, 0)
	}
	if room, due := over(events(in.View.Items), s.MaxSize); due && in.Total-in.Fixed >= s.MinTokens {
		d.events(session.ReasonEvents, s.MaxSize/2, room)
	}
	limit := tokenLimit(s.MaxTokens, in.Window)
	if room, due := over(in.Total, limit); due {
		d.tokens(Need{Reason: session.ReasonTokens}, limited(&in, limit), room)
	}
	// A max_tokens of more than half the window is not cured by a smaller history, so no more than that counts.
	limit = in.Window - min(in.Reserved, in.Window/2) - s.Margin
	if room, due := over(in.Total, limit); due {
		target := limited(&in, limit)
		if free := in.Window - in.Reserved - s.Margin; free > 0 {
			target = min(target, free-in.Fixed)
		}
		d.tokens(Need{Reason: session.ReasonWindow, Hard: !in.Need.Ahead}, target, room)
	}
}

// tokenLimit returns the number of tokens that a limit allows, which up to 1 is a share of the window; 0: unlimited.
func tokenLimit(limit float64, window int) int {
	if limit <= 1 {
		return int(limit * float64(window)) // none if the window is unknown
	}
	return int(min(limit, math.MaxInt32))
}

func (d *Due) events(reason session.Reason, target, room int) {
	d.Need.Reason = reason
	d.Target.Events, d.Later.Events = min(d.Target.Events, max(target-room, 0)), min(d.Later.Events, max(target, 0))
}

func (d *Due) tokens(need Need, target, room int) {
	d.Need = need
	d.Target.Tokens, d.Later.Tokens = min(d.Target.Tokens, max(target-room, 0)), min(d.Later.Tokens, max(target, 0))
}

// addRequest adds the caller's demand. An overflow is about tokens, even if only events are due.
func (d *Due) addRequest(in Input) {
	nothing := d.Need.Reason == ""
	if nothing {
		d.events(in.Need.Reason, events(in.View.Items)/2, 0)
	}
	if nothing || in.Need.Reason == session.ReasonOverflow && d.Target.Tokens == unlimited {
		d.tokens(d.Need, max(in.Total-in.Fixed, 0)/2, 0)
	}
	d.Need.Hard = d.Need.Hard || in.Need.Hard
	d.Need.Try = in.Need.Try
	switch in.Need.Reason {
	case session.ReasonRequest, session.ReasonOverflow: // more urgent than any limit
		d.Need.Reason = in.Need.Reason
	}
}
