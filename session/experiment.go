package session

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
)

// Groups is how many groups the sessions of an arm are divided into. The variance between the groups' sums estimates the variance between
// sessions, so that the cost of each single session need not be stored.
const Groups = 64

// Arm is the part of an experiment that a session is in.
type Arm int

// The arms of a holdout.
const (
	Treated Arm = iota
	HeldOut     // its history is not condensed, or by another condenser
)

// Assignment is a session's assignment in an experiment.
type Assignment struct {
	Arm   Arm
	Group int // less than Groups
}

// Assign returns a session's assignment in an experiment that holds out the given share of sessions, from 0 to 1. It depends on the secret
// and the id only, so it is the same on every replica. A session that is held out stays held out when the share grows.
func (s Secret) Assign(id SessionID, share float64) Assignment {
	h := s.derive("holdout", string(id))
	assignment := Assignment{Group: int(h[8]) % Groups}
	if float64(binary.BigEndian.Uint64(h[:8])) < share*math.MaxUint64 {
		assignment.Arm = HeldOut
	}
	return assignment
}

// Holdout is a comparison of a tenant's sessions with a share of them that is not condensed, or by another condenser.
type Holdout struct {
	Share   float64 // 0: none
	Variant string  // identifies the condenser of the sessions that are held out; empty: they are not condensed
}

// Experiment returns the name of a tenant's holdout experiment. Changing the share or the condenser begins another experiment.
func (s Secret) Experiment(tenant string, h Holdout) string {
	parts := []string{"experiment", tenant, strconv.FormatFloat(h.Share, 'g', -1, 64)}
	if h.Variant != "" {
		parts = append(parts, h.Variant)
	}
	return s.derive(parts...).String()[:32]
}

// Entry is a session's contribution to an experiment.
type Entry struct {
	Experiment string
	Assignment Assignment
	Begun      time.Time // when the session began
	Sums       Sums
}

// Opens returns the start of an experiment whose first entry is e: the start of e's session if e counts a session, otherwise now.
func (e *Entry) Opens(now time.Time) time.Time {
	if e.Sums.Sessions > 0 {
		return e.Begun
	}
	return now
}

// Sums are the totals of some sessions.
type Sums struct {
	Sessions int64
	Steps    int64 // agent requests that upstream answered
	Unpriced int64 // requests, of any kind, with unknown cost
	Errors   int64 // agent requests that upstream refused or failed
	Nano     int64 // cost, in billionths of a dollar
}

// Add adds the totals of other sessions.
func (t *Sums) Add(more Sums) {
	t.Sessions += more.Sessions
	t.Steps += more.Steps
	t.Unpriced += more.Unpriced
	t.Errors += more.Errors
	t.Nano += more.Nano
}

// Experiment holds the totals of an experiment. Sessions that began before the experiment do not count.
type Experiment struct {
	Since time.Time // when it began, zero if nothing was added yet
	Arms  [2][Groups]Sums
}
