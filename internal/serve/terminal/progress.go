package terminal

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// redrawEvery is how often a line of progress changes.
const redrawEvery = 100 * time.Millisecond

// Progress shows how far long work has come in one line of a terminal, which it writes again and again. On anything else it writes nothing.
// It is safe for concurrent use.
type Progress struct {
	screen Screen
	what   string
	total  int
	now    func() time.Time

	mu    sync.Mutex
	done  int
	begun time.Time
	drawn time.Time // zero: nothing is on the screen
}

// NewProgress begins to show work of total parts, such as "replaying" 214 sessions. A total of 0 is not known. Call End when done.
func NewProgress(s Screen, what string, total int) *Progress {
	return newProgress(s, what, total, time.Now)
}

func newProgress(s Screen, what string, total int, now func() time.Time) *Progress {
	p := &Progress{screen: s, what: what, total: total, now: now, begun: now()}
	p.Add(0)
	return p
}

// Add says that n more parts are done.
func (p *Progress) Add(n int) {
	if !p.screen.escapes {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	now := p.now()
	if now.Sub(p.drawn) < redrawEvery && p.done != p.total {
		return
	}
	p.drawn = now
	fmt.Fprintf(p.screen, "%s%s", p.screen.EraseLine(), p.line(p.screen.Columns()-1, now)) // a full line would wrap
}

// End removes the line, so that the next output begins at the left edge.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.drawn.IsZero() {
		fmt.Fprint(p.screen, p.screen.EraseLine())
		p.drawn = time.Time{}
	}
}

// line returns the line in at most n columns. What does not fit is left out, the bar first.
func (p *Progress) line(n int, now time.Time) string {
	if p.total <= 0 {
		return Clip(fmt.Sprintf("%s: %d", p.what, p.done), n)
	}
	share := min(float64(p.done)/float64(p.total), 1)
	text := fmt.Sprintf(": %d of %d, %d%%", p.done, p.total, int(share*100))
	if spent := now.Sub(p.begun); p.done > 0 && p.done < p.total && spent > 3*time.Second {
		left := time.Duration(float64(spent) / share * (1 - share))
		text += ", about " + rough(left) + " left"
	}
	longest := fmt.Sprintf("%s [] : %d of %d, 100%%, about 59 min left", p.what, p.total, p.total)
	if room := n - utf8.RuneCountInString(longest); room >= 10 { // as long at the end as at the beginning
		width := min(room, 30)
		full := int(share * float64(width))
		text = " [" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]" + text
	}
	return Clip(p.what+text, n)
}

// rough returns a time in the largest unit that says enough.
func rough(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", max(1, int(d.Seconds())))
	}
	return fmt.Sprintf("%d min", int((d+time.Minute/2)/time.Minute))
}
