package holdout_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/holdout"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// fleet simulates the concurrent sessions of a tenant, and what they are charged.
type fleet struct {
	random  *rand.Rand
	share   float64
	factor  float64 // of the cost of a step when condensed
	spread  float64 // of the logarithm of a session's cost
	open    []run
	account session.Experiment
}

type run struct {
	assignment session.Assignment
	steps      int
	cost       float64 // of a step
}

// step makes a request in one of the open sessions. A session that ends is replaced by a new one.
func (f *fleet) step() {
	i := f.random.IntN(len(f.open))
	r := &f.open[i]
	if r.steps == 0 {
		assignment := session.Assignment{Group: f.random.IntN(session.Groups)}
		if f.random.Float64() < f.share {
			assignment.Arm = session.HeldOut
		}
		size := math.Exp(f.spread * f.random.NormFloat64())
		*r = run{assignment, 1 + f.random.IntN(9), size * math.Exp(0.5*f.random.NormFloat64())}
		if assignment.Arm == session.Treated {
			r.cost *= f.factor
		}
		f.account.Arms[r.assignment.Arm][r.assignment.Group].Add(session.Sums{Sessions: 1})
	}
	r.steps--
	f.account.Arms[r.assignment.Arm][r.assignment.Group].Add(session.Sums{Steps: 1, Nano: int64(r.cost * 1e7)})
}

// saved returns the mean saving per session.
func (f *fleet) saved() float64 {
	return 5 * 0.01 * math.Exp((f.spread*f.spread+0.25)/2) * (1 - f.factor)
}

// TestHonest simulates many experiments, inspects each very often, and counts those that were ever wrong: in an A/A test, any claim is wrong;
// otherwise, an interval without the true difference is. With -short it simulates only the first tenth of them.
func TestHonest(t *testing.T) {
	const steps = 60_000
	experiments := 400
	if testing.Short() {
		experiments = 40
	}
	for name, f := range map[string]fleet{
		"A/A, half held out":       {share: 0.5, factor: 1, spread: 1},
		"A/A, a twentieth":         {share: 0.05, factor: 1, spread: 1},
		"A/A, few large sessions":  {share: 0.05, factor: 1, spread: 1.5},
		"saves a third":            {share: 0.05, factor: 0.67, spread: 1},
		"costs half as much again": {share: 0.2, factor: 1.5, spread: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claimed, missed, known := 0, 0, 0
			for n := range experiments {
				f := f
				f.random = rand.New(rand.NewPCG(2, uint64(n)))
				f.open = make([]run, 40)
				wrong, claim, last := false, false, holdout.Comparison{}
				for i, look := 0, 200; i < steps; i++ {
					if f.step(); i < look {
						continue
					}
					look += look / 100
					last = holdout.Compare(&f.account, session.Holdout{Share: f.share})
					if in := last.SavedUSD; in != nil && (in.Low > f.saved() || in.High < f.saved()) {
						wrong = true
					}
					claim = claim || last.Verdict != holdout.Unknown
				}
				missed += count(wrong)
				claimed += count(claim)
				in := last.SavedUSD
				known += count(in != nil && (in.Low > 0 || in.High < 0))
			}
			t.Logf("%d of %d ever claimed a difference, %d missed the true one, %d claim one at last", claimed, experiments, missed, known)
			if missed > experiments/20 {
				t.Errorf("%d of %d experiments missed the true difference at some time", missed, experiments)
			}
			if f.factor == 1 && claimed > experiments/20 {
				t.Errorf("%d of %d claimed a difference where there is none", claimed, experiments)
			}
			if f.factor != 1 && known < experiments*3/4 {
				t.Errorf("only %d of %d found the difference", known, experiments)
			}
		})
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

func TestVerdicts(t *testing.T) {
	charge := func(sessions int64, condensed, held session.Sums) *session.Experiment {
		a := &session.Experiment{Since: time.Unix(1, 0)}
		for i := range sessions {
			condensed.Sessions, held.Sessions = 1, 1
			vary := session.Sums{Nano: i % 7 * 1e6}
			a.Arms[session.Treated][i%session.Groups].Add(condensed)
			a.Arms[session.Treated][i%session.Groups].Add(vary)
			a.Arms[session.HeldOut][i%session.Groups].Add(held)
			a.Arms[session.HeldOut][i%session.Groups].Add(vary)
		}
		return a
	}
	cheap, dear := session.Sums{Steps: 12, Nano: 1e8, Errors: 3}, session.Sums{Steps: 10, Nano: 3e8}
	for _, c := range []struct {
		account *session.Experiment
		want    string
	}{
		{&session.Experiment{}, holdout.Unknown},
		{charge(99, cheap, dear), holdout.Unknown},
		{charge(100, cheap, dear), holdout.Saves},
		{charge(100, dear, cheap), holdout.Costs},
		{charge(100, cheap, cheap), holdout.Unknown},
		{charge(100, session.Sums{Steps: 12, Unpriced: 1}, dear), holdout.Unpriced},
	} {
		if got := holdout.Compare(c.account, session.Holdout{Share: 0.5}); got.Verdict != c.want {
			t.Errorf("%+v, want %s", got, c.want)
		}
	}
	got := holdout.Compare(charge(100, cheap, dear), session.Holdout{Share: 0.5})
	if got.MoreSteps.Mean != 2 || math.Abs(got.SavedUSD.Mean-0.2) > 1e-9 || got.HeldOut.Sessions != 100 || got.Condensed.StepsPerSession != 12 ||
		got.MoreErrors.Mean != 3 || got.Condensed.ErrorsPerSession != 3 {
		t.Errorf("%+v %+v %+v", got, got.MoreSteps, got.SavedUSD)
	}
	own := session.Holdout{Share: 0.5, Variant: "b"}
	for want, account := range map[string]*session.Experiment{
		holdout.MainSaves: charge(100, cheap, dear), holdout.ArmSaves: charge(100, dear, cheap), holdout.Unknown: charge(100, dear, dear),
	} {
		if got := holdout.Compare(account, own); got.Verdict != want {
			t.Errorf("of an arm with its own condenser is said %q, want %q", got.Verdict, want)
		}
	}
}
