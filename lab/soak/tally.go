package soak

import (
	"fmt"
	"strings"
	"sync"
)

// Violation is something that must never happen.
type Violation struct {
	Rule   string
	Where  string // exchange, or line of a conversation
	Detail string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Rule, v.Where, v.Detail) }

// mostViolations bounds the report: one defect shows many times. All are counted.
const mostViolations = 20

// longestDetail bounds what is shown of one violation, in bytes.
const longestDetail = 1500

// tally counts what happens. It is safe for concurrent use.
type tally struct {
	mu         sync.Mutex
	counts     map[string]map[string]int // by group
	violations []Violation
	splits     []string // the first of them, to look into
}

func newTally() *tally { return &tally{counts: map[string]map[string]int{}} }

// The groups of counts.
const (
	groupInjected   = "faults injected"       // by kind
	groupSummariser = "summariser faults"     // by kind
	groupEnded      = "exchanges"             // by how they ended
	groupCondensed  = "condensations"         // by reason
	groupLines      = "lines of conversation" // by kind
	groupSplit      = "splits"                // by cause
	groupChecked    = "checks"                // by what was checked
	groupViolations = "violations"            // by rule
)

func (t *tally) count(group, name string) { t.add(group, name, 1) }

func (t *tally) add(group, name string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[group] == nil {
		t.counts[group] = map[string]int{}
	}
	t.counts[group][name] += n
}

// of is one count.
func (t *tally) of(group, name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[group][name]
}

// sum adds up a group, or those of its counts whose name has a part.
func (t *tally) sum(group, part string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := 0
	for name, n := range t.counts[group] {
		if strings.Contains(name, part) {
			sum += n
		}
	}
	return sum
}

// split counts what was split in two, and keeps where.
func (t *tally) split(what, detail string) {
	t.count(groupSplit, what)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.splits) < mostViolations {
		t.splits = append(t.splits, what+": "+detail)
	}
}

func (t *tally) violate(rule, where, format string, args ...any) {
	t.count(groupViolations, rule)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.violations) < mostViolations {
		detail := fmt.Sprintf(format, args...)
		t.violations = append(t.violations, Violation{rule, where, strings.ToValidUTF8(detail[:min(len(detail), longestDetail)], "")})
	}
}
