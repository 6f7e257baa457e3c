package session

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
)

// Groups is how many groups the sessions of an arm are dealt to. What the sums of groups differ by tells how much sessions differ, so
// that the cost of no single session has to be kept.
const Groups = 64

// Arm is the part of an experiment that a session is in.
type Arm int

// The arms of a holdout.
const (
	Treated Arm = iota
	HeldOut     // its history is left alone
)

// Seat is where an experiment has a session.
type Seat struct {
	Arm   Arm
	Group int // below Groups
}

// Seat draws a session's seat where that share of sessions is held out. It is the same on every replica, and a session that is held out
// stays so when the share grows.
func (s Secret) Seat(id SessionID, share float64) Seat {
	h := s.derive("holdout", string(id))
	seat := Seat{Group: int(h[8]) % Groups}
	if float64(binary.BigEndian.Uint64(h[:8])) < share*math.MaxUint64 {
		seat.Arm = HeldOut
	}
	return seat
}

// Experiment names that of a tenant's holdout. Another share begins another one.
func (s Secret) Experiment(tenant string, share float64) string {
	return s.derive("experiment", tenant, strconv.FormatFloat(share, 'g', -1, 64)).String()[:32]
}

// Entry is what is added to an experiment.
type Entry struct {
	Experiment string
	Seat       Seat
	Begun      time.Time // when the thread began that it is for
	Sums       Sums
}

// Sums is what sessions came to.
type Sums struct {
	Sessions int64
	Steps    int64 // requests of runs that upstream answered
	Unpriced int64 // requests among all whose cost is not known
	Nano     int64 // cost, in billionths of a dollar
}

// Add adds what other sessions came to.
func (t *Sums) Add(more Sums) {
	t.Sessions += more.Sessions
	t.Steps += more.Steps
	t.Unpriced += more.Unpriced
	t.Nano += more.Nano
}

// Experiment is what the sessions of an experiment came to. Threads that had begun before it are left out.
type Experiment struct {
	Since time.Time // zero: nothing was added yet
	Arms  [2][Groups]Sums
}

// Opens is when an experiment begins whose first entry is c: with the session that begins with it, if one does.
func Opens(c Entry, now time.Time) time.Time {
	if c.Sums.Sessions > 0 {
		return c.Begun
	}
	return now
}
