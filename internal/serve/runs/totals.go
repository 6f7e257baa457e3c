package runs

import (
	"fmt"
	"math"
	"net/http"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/journal"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// Totals are the sums of a run's requests. If the run only observes, Forwarded and Saved are what they would have been.
type Totals struct {
	Observe       bool         `json:"observe"`
	Steps         int          `json:"steps"`          // answered requests of conversations
	Other         int          `json:"other"`          // requests that no conversation is read from, such as lists of models
	Failed        int          `json:"failed"`         // requests that were answered with an error, or not at all
	Condensations int          `json:"condensations"`  //
	Tokens        int          `json:"tokens"`         // of the steps, as the agent sent them
	Forwarded     int          `json:"forwarded"`      // tokens that upstream got
	Charged       account.Pico `json:"charged_usd"`    // by upstream, for the steps whose price is known, and for summaries
	Saved         account.Pico `json:"saved_usd"`      // less the cost of summaries; negative if condensing cost more
	Unpriced      int          `json:"unpriced_steps"` // steps whose price is not known
}

// add adds a request that has ended. What upstream charged for it counts even if it failed, or if the client left.
func (t *Totals) add(r *proxy.Record) {
	turn, sums := r.Turn, journal.SumsOf(r)
	if !r.Asked.Plan && !r.Counts() { // counting tokens is free
		t.charge(sums.Charged, 0)
	}
	switch {
	case sums.Failed > 0 || r.Status != http.StatusOK && r.Code == "":
		t.Failed++
		return
	case !r.IsStep():
		t.Other++
		return
	}
	t.Steps++
	t.Tokens += turn.Before.Tokens
	saved, forwarded := sums.Saved(), turn.After.Tokens
	t.Condensations += int(sums.Condensations)
	if t.Observe {
		saved, forwarded = sums.Spared, turn.Before.Tokens-turn.Spared
		if turn.Made {
			t.Condensations++
		}
	}
	t.Forwarded += forwarded
	if r.Asked.Plan || r.Bill == nil || !r.Bill.Priced {
		t.Unpriced++
		return
	}
	t.charge(0, saved)
}

// charge adds to the amounts. They are kept as whole numbers, so that they add up to the journal's.
func (t *Totals) charge(charged, saved account.Pico) {
	t.Charged += charged
	t.Saved += saved
}

// addCall adds a call of the proxy's own.
func (t *Totals) addCall(c limit.Call) {
	cost := journal.SumsOfCall(&c).Charged
	t.charge(cost, -cost)
}

// Line describes the totals in one line.
func (t Totals) Line() string {
	switch {
	case t.Steps == 0 && t.Failed > 0:
		return fmt.Sprintf("no step was answered, %s failed", count(t.Failed, "request"))
	case t.Steps == 0:
		return "no request of the agent's conversations came through Dewpoint. See 'dewpoint run --list' for what is pointed, and docs/run.md"
	case t.Observe:
		return fmt.Sprintf("observed %s, which were forwarded unchanged. With Dewpoint: %s%s", count(t.Steps, "step"), t.tokens(), t.money((t.Charged-t.Saved).USD(), t.Charged.USD()))
	}
	return fmt.Sprintf("%s, %s%s", count(t.Steps, "step"), t.tokens(), t.money(t.Charged.USD(), (t.Charged+t.Saved).USD()))
}

func (t Totals) tokens() string {
	text := fmt.Sprintf("%s, %s of %s tokens sent", count(t.Condensations, "condensation"), short(t.Forwarded), short(t.Tokens))
	if t.Forwarded < t.Tokens {
		text += fmt.Sprintf(" (%.0f%% fewer)", 100*float64(t.Tokens-t.Forwarded)/float64(t.Tokens))
	}
	return text
}

// money compares a cost with Dewpoint and one without.
func (t Totals) money(with, without float64) string {
	switch {
	case t.Unpriced == t.Steps:
		return "; no price is known for the model"
	case usd(with) == usd(without):
		return fmt.Sprintf(", %s USD with and without Dewpoint", usd(with))
	case with > without:
		return fmt.Sprintf(", %s USD, %s more than without Dewpoint", usd(with), usd(with-without))
	}
	return fmt.Sprintf(", %s USD instead of %s (%.0f%% saved)", usd(with), usd(without), 100*(without-with)/without)
}

// usd writes an amount, a small one with more digits.
func usd(amount float64) string {
	if math.Abs(amount) < 0.1 {
		return fmt.Sprintf("%.4f", amount)
	}
	return fmt.Sprintf("%.2f", amount)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// short writes a number of tokens.
func short(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}
