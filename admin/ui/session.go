package ui

import (
	"fmt"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// SessionReads is what the page of a session is made from.
type SessionReads struct {
	Session session.Session
	Title   string // the first words that a person typed; empty: not shown
	Missing Missing
	Threads []session.Thread
	Shown   int // index of the thread whose steps are shown
	Steps   []StepSize
	Oldest  int // the first step to list; 0: the newest ones
	Saved   Saved
	Limit   string // what the condenser waits for, in words; empty: not known
	Mode    string // what is done with the tenant's histories; empty: they are condensed as usual
	Facts   []Fact
}

// StepSize is the size of a step.
type StepSize struct {
	At       int // position
	Time     time.Time
	Messages int
	Sent     int // tokens, as all below
	Prompt   int // system prompt and tools
	Record   int
	Kept     int
	New      int
	Cached   int    // of what was forwarded
	Made     []Link // condensations made for it
	Whole    bool   // a limit was exceeded and the history left as it was
	Done     string // what was done and why; empty: as Made says
	Cache    string // what the cache did; empty: not known
	Added    time.Duration
	Model    string
}

// Forwarded returns the size of what went upstream.
func (s *StepSize) Forwarded() int { return s.Prompt + s.Record + s.Kept + s.New }

// Saved is what condensing saved.
type Saved struct {
	Tokens                           int64
	NotSent, Rewritten, Own, Net     float64 // in dollars
	Unpriced                         []string
	Condensations, Calls, MessagesIn int
}

// Tile is a figure with a sentence.
type Tile struct {
	Figure, Text string
	Sign         int // 1: a gain, -1: a loss
	URL          string
}

// Session is the page of a session.
type Session struct {
	ID           session.SessionID
	Title, Key   string
	Tenant       string
	Created      time.Time
	Seen         time.Time
	Tiles        []Tile
	Wide, Narrow *Strip
	Rows         []StepRow
	Older, Newer string
	Threads      []ThreadRow
	Thread       session.ThreadID
	Condense     string // address of the action
	Missing      Missing
	Mode         string
	Pending      bool
	Facts        []Fact
	Cached       bool // the steps say what was cached
	Timed        bool
	Whole        bool   // some exceeded a limit and were left as they were
	Page         string // address of the first page
}

func (Session) template() string { return "session" }

// Heading returns the title.
func (s Session) Heading() string { return s.Title }

// StepRow is a step in the list of steps.
type StepRow struct {
	StepSize
	Number int
	URL    string
}

// ThreadRow is a thread in the tree of threads.
type ThreadRow struct {
	ID      session.ThreadID
	URL     string
	Depth   int // of the tree
	Purpose string
	From    string
	Length  int
	Made    int
	Seen    time.Time
	Current bool
}

const stepRows = 40

// NewSession makes the page of a session.
func NewSession(in *SessionReads) Session {
	s := Session{
		ID: in.Session.ID, Title: titleOf(&in.Session, in.Title), Key: visible(in.Session.Key), Tenant: in.Session.Tenant, Created: in.Session.Created,
		Seen: in.Session.Seen, Missing: in.Missing, Mode: in.Mode, Facts: in.Facts,
	}
	s.Page = SessionURL(in.Session.ID)
	s.Threads = tree(in)
	if len(in.Threads) == 0 {
		return s
	}
	t := &in.Threads[in.Shown]
	place := Place{Session: in.Session.ID, Thread: t.ID}
	s.Thread, s.Pending = t.ID, t.Requested > 0
	s.Condense = place.threadURL() + "/condense"
	s.Tiles = tiles(in, t)
	s.Wide, s.Narrow = newStrip(place, in.Steps, wideStrip), newStrip(place, in.Steps, narrowStrip)
	s.Whole = slices.ContainsFunc(in.Steps, func(step StepSize) bool { return step.Whole })
	s.list(in, place)
	return s
}

// list sets the rows of the list of steps, newest first.
func (s *Session) list(in *SessionReads, place Place) {
	end := len(in.Steps)
	if in.Oldest > 0 {
		end = min(end, in.Oldest+stepRows-1)
	}
	begin := max(0, end-stepRows)
	for i := end - 1; i >= begin; i-- {
		step := in.Steps[i]
		s.Cached, s.Timed = s.Cached || step.Cache != "" || step.Cached > 0, s.Timed || step.Added > 0
		s.Rows = append(s.Rows, StepRow{step, i + 1, place.stepURL(step.At)})
	}
	page := func(oldest int) string {
		return fmt.Sprintf("%s?thread=%s&oldest=%d#steps", place.sessionURL(), place.Thread, oldest)
	}
	if begin > 0 {
		s.Older = page(max(1, begin-stepRows+1))
	}
	if end < len(in.Steps) {
		s.Newer = page(end + 1)
	}
}

func tiles(in *SessionReads, t *session.Thread) (all []Tile) {
	saved := &in.Saved
	switch {
	case len(saved.Unpriced) > 0:
		all = append(all, Tile{Figure: tokens(int(saved.Tokens)), Text: "tokens not sent. There is no price for " + visible(saved.Unpriced[0]) + ", so no amount", Sign: sign(float64(saved.Tokens))})
	default:
		text := "saved net"
		if saved.NotSent != 0 || saved.Own != 0 {
			text += fmt.Sprintf("; %s not sent, %s own calls, ", usd(saved.NotSent), usd(-saved.Own))
			if saved.Rewritten > 0 {
				text += usd(saved.Rewritten) + " because what was removed would not have been cached"
			} else {
				text += usd(-saved.Rewritten) + " caches rewritten"
			}
		}
		all = append(all, Tile{Figure: signed(saved.Net), Text: text, Sign: sign(saved.Net)})
	}
	all = append(all, Tile{Figure: count(len(in.Steps)), Text: "steps in this thread"})
	hidden := 0
	for _, c := range t.Condensations {
		for _, r := range c.Forgotten {
			hidden += r.To - r.From
		}
	}
	all = append(all, Tile{Figure: count(len(t.Condensations)), Text: "condensations; " + plural(hidden, "message") + " hidden"})
	if n := len(in.Steps); n > 0 {
		last := &in.Steps[n-1]
		text := "tokens forwarded in the newest step, of " + tokens(last.Sent) + " that the agent sent"
		if in.Limit != "" {
			text += "; " + in.Limit
		}
		all = append(all, Tile{Figure: tokens(last.Forwarded()), Text: text})
	}
	return all
}

func sign(v float64) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

// signed writes an amount with its sign.
func signed(v float64) string {
	if v > 0 {
		return "+" + usd(v)
	}
	return usd(v)
}

// titleOf returns what a session is called: the first words of a person, its key or its ID.
func titleOf(s *session.Session, words string) string {
	switch {
	case words != "":
		return firstLine(visible(words), 90)
	case s.Key != "":
		return firstLine(visible(s.Key), 90)
	}
	return string(s.ID)
}

// tree lists the threads of a session, each after the one that it comes from.
func tree(in *SessionReads) (rows []ThreadRow) {
	known := map[session.ThreadID]bool{}
	for i := range in.Threads {
		known[in.Threads[i].ID] = true
	}
	children := map[session.ThreadID][]int{}
	for i := range in.Threads {
		parent := parentOf(&in.Threads[i])
		if !known[parent] || parent == in.Threads[i].ID {
			parent = ""
		}
		children[parent] = append(children[parent], i)
	}
	visited := map[int]bool{}
	var walk func(parent session.ThreadID, depth int)
	walk = func(parent session.ThreadID, depth int) {
		for _, i := range children[parent] {
			if visited[i] {
				continue
			}
			visited[i] = true
			rows = append(rows, threadRow(in, i, depth))
			walk(in.Threads[i].ID, min(depth+1, 6))
		}
	}
	walk("", 0)
	for i := range in.Threads {
		if !visited[i] {
			rows = append(rows, threadRow(in, i, 0))
		}
	}
	return rows
}

func parentOf(t *session.Thread) session.ThreadID {
	if t.Parent != "" {
		return t.Parent
	}
	return t.Caller
}

func threadRow(in *SessionReads, i, depth int) ThreadRow {
	t := &in.Threads[i]
	row := ThreadRow{
		ID: t.ID, URL: SessionURL(t.Session) + "?thread=" + string(t.ID), Depth: depth, Purpose: purposes[t.Purpose], Length: t.Len,
		Made: len(t.Condensations), Seen: t.Seen, Current: i == in.Shown,
	}
	switch {
	case t.ForkAt > 0 && t.Parent != "":
		row.From = fmt.Sprintf("forked after message %s", count(t.ForkAt))
	case t.Parent != "":
		row.From = "continues another thread"
	case t.Caller != "":
		row.Purpose, row.From = "sub-agent", "started by another thread"
	default:
		row.From = "a conversation of its own"
	}
	return row
}

// Newest returns the index of the thread that a session's page shows unless another is asked for: the longest conversation.
func Newest(threads []session.Thread) int {
	best := 0
	for i := range threads {
		t, b := &threads[i], &threads[best]
		if m, n := t.Purpose == session.PurposeMain || t.Purpose == session.PurposeKept, b.Purpose == session.PurposeMain || b.Purpose == session.PurposeKept; m != n {
			if m {
				best = i
			}
			continue
		}
		if t.Len > b.Len || t.Len == b.Len && t.Seen.After(b.Seen) {
			best = i
		}
	}
	return best
}

// Positions returns the positions of steps.
func Positions(steps []StepSize) []int {
	out := make([]int, len(steps))
	for i := range steps {
		out[i] = steps[i].At
	}
	slices.Sort(out)
	return out
}

// Title returns what a session is called, given the first words that a person typed in it.
func Title(s *session.Session, words string) string { return titleOf(s, words) }
