package proxy

import "fmt"

// notice tells in words what this turn condensed, for a client that can show it; empty if nothing or if the tenant does
// not want it.
func (t *turn) notice() string {
	if !t.tenant.Notify || len(t.report) == 0 {
		return ""
	}
	events, before, after := 0, t.report[0].Before, t.report[len(t.report)-1].After
	for _, c := range t.report {
		events += c.Events
	}
	if events <= 0 {
		return fmt.Sprintf("Shortened new tool results, %s to %s tokens", thousands(before), thousands(after))
	}
	return fmt.Sprintf("Condensed %d events into a summary, %s to %s tokens", events, thousands(before), thousands(after))
}

// thousands writes a number of tokens as people say it.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%dk", (n+500)/1000)
}
