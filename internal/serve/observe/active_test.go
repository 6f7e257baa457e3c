package observe

import (
	"strconv"
	"testing"
	"time"
)

func TestActiveSessions(t *testing.T) {
	m := NewMetrics()
	a := m.active
	begin := time.Unix(1e9, 0)
	a.Add("one", begin)
	a.Add("two", begin.Add(time.Minute))
	a.Add("one", begin.Add(10*time.Minute))
	for after, want := range map[time.Duration]int{10 * time.Minute: 2, 16 * time.Minute: 2} {
		if got := m.activeSessions(begin.Add(after)); got != want {
			t.Errorf("%d active after %s, want %d", got, after, want)
		}
	}
	if got := m.activeSessions(begin.Add(17 * time.Minute)); got != 1 {
		t.Errorf("%d active once the second is idle", got)
	}
	for i := range maxActive + 10 {
		a.Add(strconv.Itoa(i), begin.Add(20*time.Minute))
	}
	if got := a.Len(); got != maxActive {
		t.Errorf("%d remembered", got)
	}
	a.Add("late", begin.Add(time.Hour))
	if got := m.activeSessions(begin.Add(time.Hour)); got != 1 {
		t.Errorf("%d active when all others are idle", got)
	}
}
