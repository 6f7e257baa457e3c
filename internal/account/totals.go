package account

import (
	"errors"
	"math"
	"reflect"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Key is what a row of totals is of. All of it is bounded: see Clients.
type Key struct {
	Day    string // in UTC, such as 2026-01-02
	Tenant string
	Model  string // a configured or known one, otherwise "other"
	Client
	Arm  string // of the tenant's holdout: "condensed" or "held_out"; empty: there is none
	Kind Kind
}

// Kind says what a row sums up.
type Kind string

// The kinds of rows.
const (
	Billed Kind = ""     // requests that are billed by their tokens
	Plan   Kind = "plan" // requests of a subscription, and own calls with its key; tokens have no price, and amounts say what requests would cost
	Own    Kind = "own"  // calls of the proxy's own
)

// Sums are what a number of requests, or of calls of the proxy's own, come to. All of them add up, over rows, days and replicas.
type Sums struct {
	Requests      int64 `json:"requests"`
	Steps         int64 `json:"steps"`  // requests of conversations that upstream has answered
	Failed        int64 `json:"failed"` // requests that were not answered as their client wanted
	Condensations int64 `json:"condensations"`

	Sent      int64 `json:"sent"`      // prompt tokens of the steps, as clients sent them
	Forwarded int64 `json:"forwarded"` // and as they were forwarded

	// What upstream charges for, in tokens.
	Input       int64 `json:"input"`
	Cached      int64 `json:"cached"`           // part of Input
	Written     int64 `json:"cache_written"`    // part of Input
	WrittenLong int64 `json:"cache_written_1h"` // part of Written
	Output      int64 `json:"output"`

	Reckoned          int64 `json:"reckoned"`           // charged requests whose usage upstream did not report, or not in full
	Unpriced          int64 `json:"unpriced"`           // charged requests to models without a known price
	UnpricedSent      int64 `json:"unpriced_sent"`      // the part of Sent of such requests
	UnpricedForwarded int64 `json:"unpriced_forwarded"` // and of Forwarded

	Charged   Pico `json:"charged_usd"`
	NotSent   Pico `json:"not_sent_usd"`   // the price of the tokens that were not sent
	Rewritten Pico `json:"rewritten_usd"`  // the price of writing the prompt cache again; negative
	Spared    Pico `json:"would_save_usd"` // what condensing would have saved, where it is only observed
}

// Saved returns what condensing saved on prompts.
func (s *Sums) Saved() Pico { return s.NotSent + s.Rewritten }

// Add adds other sums. A sum that would overflow stays at its limit.
func (s *Sums) Add(more *Sums) {
	to, from := reflect.ValueOf(s).Elem(), reflect.ValueOf(more).Elem()
	for i := range to.NumField() {
		a, b := to.Field(i).Int(), from.Field(i).Int()
		sum := a + b
		switch {
		case a > 0 && b > 0 && sum < 0:
			sum = math.MaxInt64
		case a < 0 && b < 0 && sum >= 0:
			sum = math.MinInt64
		}
		to.Field(i).SetInt(sum)
	}
}

// values returns the sums in the order in which they are stored. Further ones are added at the end of Sums.
func (s *Sums) values() []int64 {
	of := reflect.ValueOf(s).Elem()
	all := make([]int64, of.NumField())
	for i := range all {
		all[i] = of.Field(i).Int()
	}
	return all
}

// separator separates the parts of a stored row's name.
const separator = "\x1f"

var errRow = errors.New("not the name of a row of totals")

// Total returns a row as it is stored.
func (k Key) Total(s *Sums) session.Total {
	row := strings.Join([]string{k.Tenant, k.Model, k.Agent, k.Version, k.Arm, string(k.Kind)}, separator)
	return session.Total{Period: k.Day, Row: row, Values: s.values()}
}

// RowOf reads a row as it is stored. Sums of a later version are left out.
func RowOf(t *session.Total) (Row, error) {
	parts := strings.Split(t.Row, separator)
	if len(parts) < 6 {
		return Row{}, errRow
	}
	r := Row{Key: Key{t.Period, parts[0], parts[1], Client{parts[2], parts[3]}, parts[4], Kind(parts[5])}}
	to := reflect.ValueOf(&r.Sums).Elem()
	for i, n := range t.Values {
		if i < to.NumField() {
			to.Field(i).SetInt(n)
		}
	}
	return r, nil
}

// Row is a row of totals.
type Row struct {
	Key
	Sums
}

// maxClients is how many clients the rows of a process tell apart. Names and versions are made up by clients.
const maxClients = 200

// Clients bounds the clients that are told apart. The zero value has none. It is not safe for concurrent use.
type Clients struct{ known map[Client]struct{} }

// OtherClient stands for clients beyond those that are told apart.
const OtherClient = "other"

// Of returns the client as rows name it.
func (c *Clients) Of(client Client) Client {
	if _, is := c.known[client]; is {
		return client
	}
	if len(c.known) >= maxClients {
		return Client{Agent: OtherClient}
	}
	if c.known == nil {
		c.known = map[Client]struct{}{}
	}
	c.known[client] = struct{}{}
	return client
}
