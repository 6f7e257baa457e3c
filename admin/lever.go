package admin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Mode says whether a tenant's requests are condensed.
type Mode string

// The modes.
const (
	ModeOn      Mode = "on"
	ModeObserve Mode = "observe" // decisions are made and reported; requests are forwarded unchanged
	ModeOff     Mode = "off"     // requests are forwarded unchanged
)

// Lever is a mode that overrides the configuration on all replicas for a limited time. Its times are in UTC, so that decoded levers can
// be compared with ==.
type Lever struct {
	Tenant string    `json:"tenant"` // empty: all tenants
	Mode   Mode      `json:"mode"`   // empty: remove the lever
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	From   string    `json:"from"` // remote address of the request that set it
	Reason string    `json:"reason,omitempty"`
}

// Encode returns the stored form of a lever; nil if it has no mode.
func (l Lever) Encode() []byte {
	if l.Mode == "" {
		return nil
	}
	text, _ := json.Marshal(l) // strings and times: cannot fail
	return text
}

// DecodeLever decodes the stored form of a lever. It returns the zero Lever, which has expired, if text is not valid.
func DecodeLever(text []byte) (l Lever) {
	if json.Unmarshal(text, &l) != nil {
		return Lever{}
	}
	return l
}

// Condensing is a tenant's configured mode, the mode in force, and the lever that makes the difference.
type Condensing struct {
	Configured Mode   `json:"configured"`
	InForce    Mode   `json:"in_force"`
	Lever      *Lever `json:"lever,omitempty"` // nil: the configuration is in force
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

// condensing lists the levers, and the mode of each tenant.
func (a *api) condensing(*http.Request, *query) (any, error) {
	modes := rows(a.o.Settings.Tenants(), func(t Tenant) tenantCondensing { return tenantCondensing{t.Name, t.Condensing} })
	return condensingBody{Levers: a.o.Settings.Levers(), Tenants: modes}, nil
}

// Bounds of a lever.
const (
	minLeverTime = time.Minute
	maxLeverTime = 30 * 24 * time.Hour
)

// setLever sets the lever of a tenant, or the one for all tenants.
func (a *api) setLever(r *http.Request, q *query) (any, error) {
	tenant, err := a.leverTenant(r, q)
	if err != nil {
		return nil, err
	}
	var asked leverRequest
	if err := a.readBody(r, &asked); err != nil {
		return nil, fault(http.StatusBadRequest, "invalid_body", `Send {"mode": "off", "for": "2h", "reason": "..."}.`)
	}
	if !slices.Contains([]Mode{ModeOn, ModeObserve, ModeOff}, asked.Mode) {
		return nil, badParam("mode", "Give on, observe or off.")
	}
	if len(asked.Reason) > maxTextBytes || strings.ContainsFunc(asked.Reason, func(c rune) bool { return c < ' ' }) {
		return nil, badParam("reason", "Give a single line of at most %d bytes.", maxTextBytes)
	}
	duration, err := time.ParseDuration(asked.For)
	if err != nil || duration < minLeverTime || duration > maxLeverTime {
		return nil, badParam("for", "Give a duration from 1m to 720h, such as 2h30m. For a permanent change, edit the configuration.")
	}
	now := time.Now().UTC()
	lever := Lever{Tenant: tenant, Mode: asked.Mode, Since: now, Until: now.Add(duration), From: r.RemoteAddr, Reason: asked.Reason}
	if err := a.o.Settings.SetLever(r.Context(), lever); err != nil {
		return nil, err // it names its operation
	}
	return lever, nil
}

// dropLever removes a lever.
func (a *api) dropLever(r *http.Request, q *query) (any, error) {
	tenant, err := a.leverTenant(r, q)
	if err != nil {
		return nil, err
	}
	return nil, a.o.Settings.SetLever(r.Context(), Lever{Tenant: tenant}) // it names its operation
}

// leverTenant returns the configured tenant named in the path; "" if the path is that of all tenants.
func (a *api) leverTenant(r *http.Request, q *query) (string, error) {
	if r.PathValue("tenant") == "" {
		return "", nil
	}
	name := q.id(r, "tenant")
	if q.err != nil {
		return "", q.err
	}
	return a.resolveTenant(name)
}
