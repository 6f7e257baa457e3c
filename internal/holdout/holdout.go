// Package holdout compares sessions that are condensed with those that are left alone, as the sums of both tell.
//
// The intervals are confidence sequences: they hold at all times at once, so that they may be looked at after each request and acted on
// when they exclude 0. Of each arm it is the asymptotic one of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Time-uniform central limit
// theory and asymptotic confidence sequences, Annals of Statistics 52 (2024), theorem 2.2; the difference has the sum of both widths, at
// half of the error each. The variance comes from sums of groups of sessions, as that of a ratio of sums does in survey sampling
// (Cochran, Sampling Techniques, 1977, chapter 6).
package holdout

import (
	"math"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

const (
	errors      = 0.05  // how often an interval may ever be wrong
	leastInArm  = 100   // sessions below which nothing is claimed
	usualHeld   = 400.0 // sessions held out at which intervals are the narrowest
	mostUnknown = 0.02  // share of requests whose cost may be unknown
)

// The verdicts.
const (
	Unknown  = "not known yet"
	Saves    = "condensing saves"
	Costs    = "condensing costs"
	Unpriced = "not known: too many requests have no usage or no price"
)

// Arm is what the sessions of an arm came to.
type Arm struct {
	Sessions int64   `json:"sessions"`
	Steps    int64   `json:"steps"`
	Unpriced int64   `json:"unpriced_requests"` // among all; they count as free
	USD      float64 `json:"usd"`

	USDPerSession   float64 `json:"usd_per_session"`
	StepsPerSession float64 `json:"steps_per_session"`
}

// Interval is a difference between the arms, and what it may be.
type Interval struct {
	Low  float64 `json:"low"`
	Mean float64 `json:"mean"`
	High float64 `json:"high"`
}

// Excludes0 reports whether the difference is one.
func (i *Interval) Excludes0() bool { return i != nil && (i.Low > 0 || i.High < 0) }

// Comparison is what a holdout has shown so far.
type Comparison struct {
	Since     time.Time `json:"since"` // zero: no session was added yet
	Condensed Arm       `json:"condensed"`
	HeldOut   Arm       `json:"held_out"`
	SavedUSD  *Interval `json:"saved_usd_per_session"`  // nil: there are too few sessions
	MoreSteps *Interval `json:"more_steps_per_session"` // that condensing makes agents take; nil likewise
	Verdict   string    `json:"verdict"`
}

// Compare compares the arms of an experiment of which that share is held out.
func Compare(a *session.Experiment, share float64) Comparison {
	treated, held := &a.Arms[session.Treated], &a.Arms[session.HeldOut]
	c := Comparison{Since: a.Since, Condensed: armOf(treated), HeldOut: armOf(held), Verdict: Unknown}
	if min(c.Condensed.Sessions, c.HeldOut.Sessions) < leastInArm {
		return c
	}
	between := func(more, less *[session.Groups]session.Sums, what func(session.Sums) float64) *Interval {
		usual := map[*[session.Groups]session.Sums]float64{held: usualHeld, treated: usualHeld * (1 - share) / share}
		m, wide := mean(more, what, usual[more])
		l, wider := mean(less, what, usual[less])
		return &Interval{m - l - wide - wider, m - l, m - l + wide + wider}
	}
	c.MoreSteps = between(treated, held, func(s session.Sums) float64 { return float64(s.Steps) })
	c.SavedUSD = between(held, treated, usd)
	switch unpriced := float64(c.Condensed.Unpriced + c.HeldOut.Unpriced); {
	case unpriced > mostUnknown*float64(c.Condensed.Steps+c.HeldOut.Steps):
		c.SavedUSD, c.Verdict = nil, Unpriced
	case c.SavedUSD.Low > 0:
		c.Verdict = Saves
	case c.SavedUSD.High < 0:
		c.Verdict = Costs
	}
	return c
}

func usd(s session.Sums) float64 { return float64(s.Nano) / 1e9 }

func armOf(groups *[session.Groups]session.Sums) Arm {
	var all session.Sums
	for _, g := range groups {
		all.Add(g)
	}
	a := Arm{Sessions: all.Sessions, Steps: all.Steps, Unpriced: all.Unpriced, USD: usd(all)}
	if n := float64(all.Sessions); n > 0 {
		a.USDPerSession, a.StepsPerSession = a.USD/n, float64(a.Steps)/n
	}
	return a
}

// mean is what sessions of an arm came to on average, and half the width of what that may be. The width is the best one at the usual
// number of sessions.
func mean(groups *[session.Groups]session.Sums, what func(session.Sums) float64, usual float64) (m, width float64) {
	n, total, squares := 0.0, 0.0, 0.0
	for _, g := range groups {
		n, total, squares = n+float64(g.Sessions), total+what(g), squares+float64(g.Sessions)*float64(g.Sessions)
	}
	m = total / n
	variance := 0.0
	for _, g := range groups {
		variance += math.Pow(what(g)-m*float64(g.Sessions), 2)
	}
	variance /= n - squares/n
	const alpha = errors / 2
	rho2 := (-2*math.Log(alpha) + math.Log(1-2*math.Log(alpha))) / usual
	return m, math.Sqrt(variance * 2 * (n*rho2 + 1) / (n * n * rho2) * math.Log(math.Sqrt(n*rho2+1)/alpha))
}
