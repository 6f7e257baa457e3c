package admin

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

// Mode is what condensing does for a tenant.
type Mode string

// The modes.
const (
	ModeOn      Mode = "on"
	ModeObserve Mode = "observe" // it decides and reports; requests are forwarded as they came
	ModeOff     Mode = "off"     // requests are forwarded as they came
)

// Lever is a mode that an operator has set over the configuration, for all replicas and for a time.
type Lever struct {
	Tenant string    `json:"tenant"` // empty: all
	Mode   Mode      `json:"mode"`   // empty: it is taken back
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	From   string    `json:"from"` // the address that it was set from
	Reason string    `json:"reason,omitempty"`
}

// Equal reports whether two levers are the same.
func (l Lever) Equal(o Lever) bool {
	same := l.Since.Equal(o.Since) && l.Until.Equal(o.Until)
	l.Since, l.Until, o.Since, o.Until = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return same && l == o
}

// Written is a lever as it is kept; empty if it has no mode.
func (l Lever) Written() []byte {
	if l.Mode == "" {
		return nil
	}
	text, _ := json.Marshal(l) // text and times: cannot fail
	return text
}

// ReadLever reads what Written gave, and gives the zero Lever for anything else.
func ReadLever(text []byte) (l Lever) {
	if json.Unmarshal(text, &l) != nil {
		return Lever{}
	}
	return l
}

// Condensing is what condensing does for a tenant, and why.
type Condensing struct {
	Configured Mode   `json:"configured"`
	InForce    Mode   `json:"in_force"`
	Lever      *Lever `json:"lever,omitempty"` // that is in force instead of the configuration
}

type leverRequest struct {
	Mode   Mode   `json:"mode"`
	For    string `json:"for"`
	Reason string `json:"reason"`
}

type tenantCondensing struct {
	Tenant string `json:"tenant"`
	Condensing
}

type condensingBody struct {
	Levers  []Lever            `json:"levers"`
	Tenants []tenantCondensing `json:"tenants"`
}

// condensing lists what is set, and what is in force.
func (a *api) condensing(*http.Request, *query) (any, error) {
	out := condensingBody{Levers: a.o.Settings.Levers(), Tenants: []tenantCondensing{}}
	for _, t := range a.o.Settings.Tenants() {
		out.Tenants = append(out.Tenants, tenantCondensing{t.Name, t.Condensing})
	}
	return out, nil
}

// Bounds of a lever.
const (
	shortestLever = time.Minute
	longestLever  = 30 * 24 * time.Hour
	longestLetter = 4 << 10 // bytes of a request
)

// setLever sets the lever of a tenant, or that of all.
func (a *api) setLever(r *http.Request, q *query) (any, error) {
	lever, err := a.leverOf(r, q)
	if err != nil {
		return nil, err
	}
	asked, err := readLever(r)
	if err != nil {
		return nil, err
	}
	lasts, err := howLong(asked.For)
	if err != nil {
		return nil, err
	}
	lever.Mode, lever.Reason, lever.Since = asked.Mode, asked.Reason, a.o.Now().UTC()
	lever.Until, lever.From = lever.Since.Add(lasts), r.RemoteAddr
	if err := a.o.Settings.SetLever(r.Context(), lever); err != nil {
		return nil, err //nolint:wrapcheck // it names its operation
	}
	return lever, nil
}

// dropLever takes a lever back.
func (a *api) dropLever(r *http.Request, q *query) (any, error) {
	lever, err := a.leverOf(r, q)
	if err != nil {
		return nil, err
	}
	return nil, a.o.Settings.SetLever(r.Context(), lever) //nolint:wrapcheck // it names its operation
}

// leverOf is the lever that a path names: one of a tenant that is configured, or that of all.
func (a *api) leverOf(r *http.Request, q *query) (lever Lever, err error) {
	if r.PathValue("tenant") == "" {
		return lever, nil
	}
	if lever.Tenant = q.id(r, "tenant"); q.err != nil {
		return lever, q.err
	}
	_, err = a.tenantNamed(lever.Tenant)
	return lever, err
}

func readLever(r *http.Request) (asked leverRequest, err error) {
	d := json.NewDecoder(io.LimitReader(r.Body, longestLetter))
	d.DisallowUnknownFields()
	if err := d.Decode(&asked); err != nil {
		return asked, fault(http.StatusBadRequest, "invalid_body", `Send {"mode": "off", "for": "2h", "reason": "..."}.`)
	}
	switch asked.Mode {
	case ModeOn, ModeObserve, ModeOff:
	default:
		return asked, badParam("mode", "Give on, observe or off.")
	}
	if len(asked.Reason) > longestText || strings.ContainsFunc(asked.Reason, func(c rune) bool { return c < ' ' }) {
		return asked, badParam("reason", "Give at most %d bytes in one line.", longestText)
	}
	return asked, nil
}

func howLong(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < shortestLever || d > longestLever {
		return 0, badParam("for", "Say for how long: 1m to 720h, as in 2h30m. Nothing is switched for good here: that is what the configuration is for.")
	}
	return d, nil
}
