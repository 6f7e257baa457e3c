// Package holdout compares condensed sessions with held-out ones, which are not condensed or by another condenser, by the sums of each arm.
//
// The intervals are confidence sequences: they hold at all times simultaneously, so they may be inspected after each request, and acted on as
// soon as they exclude 0. For each arm, the interval is the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas,
// Time-uniform central limit theory and asymptotic confidence sequences, Annals of Statistics 52 (2024), theorem 2.2. The interval of the
// difference is as wide as both together, at half the error each. Variances are estimated from sums over groups of sessions, as for a ratio of
// sums in survey sampling (Cochran, Sampling Techniques, 1977, chapter 6).
package holdout

import (
	"math"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

const (
	errorRate   = 0.05  // probability that an interval is ever wrong
	minSessions = 100   // in each arm, before anything is claimed
	tunedFor    = 400.0 // number of held-out sessions at which intervals are narrowest
	maxUnpriced = 0.02  // share of requests whose cost may be unknown
)

// Verdicts.
const (
	Unknown = "not known yet"
	Saves   = "condensing saves"
	Costs   = "condensing costs"

	MainSaves = "the main condenser costs less"
	ArmSaves  = "the condenser of the arm costs less"

	Unpriced = "not known: too many requests have no usage or no price"
)

// Arm is the total of an arm.
type Arm struct {
	Sessions int64   `json:"sessions"`
	Steps    int64   `json:"steps"`
	Errors   int64   `json:"errors"`            // requests of the agents that upstream refused or failed
	Unpriced int64   `json:"unpriced_requests"` // counted as free
	USD      float64 `json:"usd"`

	USDPerSession   float64 `json:"usd_per_session"`
	StepsPerSession float64 `json:"steps_per_session"`

	ErrorsPerSession float64 `json:"errors_per_session"`
}

// Interval is an estimate of a difference between the arms, with its confidence interval.
type Interval struct {
	Low  float64 `json:"low"`
	Mean float64 `json:"mean"`
	High float64 `json:"high"`
}

// Comparison is the result of a holdout so far.
type Comparison struct {
	Since     time.Time `json:"since"` // zero: no sessions yet
	Condensed Arm       `json:"condensed"`
	HeldOut   Arm       `json:"held_out"`
	SavedUSD  *Interval `json:"saved_usd_per_session"`  // nil: too few sessions
	MoreSteps *Interval `json:"more_steps_per_session"` // taken because of condensing; nil: too few sessions

	MoreErrors *Interval `json:"more_errors_per_session"` // because of condensing; nil: too few sessions

	Verdict string `json:"verdict"`
}

// Report is how the holdout of a tenant stands.
type Report struct {
	Tenant string  `json:"tenant"`
	Share  float64 `json:"share"`

	// The condenser of held-out sessions; empty: they are not condensed.
	Condenser string `json:"held_out_condenser,omitempty"`
	Ended     bool   `json:"ended"` // an override has ended it: no session is held out any more
	Comparison
}

// Compare compares the arms of an experiment.
func Compare(a *session.Experiment, h session.Holdout) Comparison {
	treated := arm{&a.Arms[session.Treated], tunedFor * (1 - h.Share) / h.Share}
	held := arm{&a.Arms[session.HeldOut], tunedFor}
	c := Comparison{Since: a.Since, Condensed: treated.total(), HeldOut: held.total(), Verdict: Unknown}
	if min(c.Condensed.Sessions, c.HeldOut.Sessions) < minSessions {
		return c
	}
	c.MoreSteps = difference(treated, held, func(s session.Sums) float64 { return float64(s.Steps) })
	c.MoreErrors = difference(treated, held, func(s session.Sums) float64 { return float64(s.Errors) })
	c.SavedUSD = difference(held, treated, usd)
	unpriced := float64(c.Condensed.Unpriced + c.HeldOut.Unpriced)
	switch {
	case unpriced > maxUnpriced*float64(c.Condensed.Steps+c.HeldOut.Steps):
		c.SavedUSD, c.Verdict = nil, Unpriced
	case c.SavedUSD.Low > 0:
		c.Verdict = verdict(h, Saves, MainSaves)
	case c.SavedUSD.High < 0:
		c.Verdict = verdict(h, Costs, ArmSaves)
	}
	return c
}

// verdict returns the verdict for an arm that is not condensed, or the one for an arm with a condenser of its own.
func verdict(h session.Holdout, uncondensed, own string) string {
	if h.Variant != "" {
		return own
	}
	return uncondensed
}

func usd(s session.Sums) float64 { return float64(s.Nano) / 1e9 }

// arm holds the sums of an arm, by group of sessions.
type arm struct {
	groups *[session.Groups]session.Sums
	tuned  float64 // number of sessions at which the confidence interval is narrowest
}

func (a arm) total() Arm {
	var all session.Sums
	for _, g := range a.groups {
		all.Add(g)
	}
	out := Arm{Sessions: all.Sessions, Steps: all.Steps, Errors: all.Errors, Unpriced: all.Unpriced, USD: usd(all)}
	if n := float64(all.Sessions); n > 0 {
		out.USDPerSession, out.StepsPerSession, out.ErrorsPerSession = out.USD/n, float64(all.Steps)/n, float64(all.Errors)/n
	}
	return out
}

// difference returns by how much the mean of a value per session is higher in one arm than in the other.
func difference(more, less arm, value func(session.Sums) float64) *Interval {
	m, mWidth := more.mean(value)
	l, lWidth := less.mean(value)
	return &Interval{m - l - mWidth - lWidth, m - l, m - l + mWidth + lWidth}
}

// mean returns the mean of a value per session, and half the width of its confidence interval.
func (a arm) mean(value func(session.Sums) float64) (m, width float64) {
	n, total, squares := 0.0, 0.0, 0.0
	for _, g := range a.groups {
		sessions := float64(g.Sessions)
		n += sessions
		total += value(g)
		squares += sessions * sessions
	}
	m = total / n
	variance := 0.0
	for _, g := range a.groups {
		variance += math.Pow(value(g)-m*float64(g.Sessions), 2)
	}
	variance /= n - squares/n
	const alpha = errorRate / 2
	rho2 := (-2*math.Log(alpha) + math.Log(1-2*math.Log(alpha))) / a.tuned
	return m, math.Sqrt(variance * 2 * (n*rho2 + 1) / (n * n * rho2) * math.Log(math.Sqrt(n*rho2+1)/alpha))
}
