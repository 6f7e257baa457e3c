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
	ModeMain    Mode = "main"    // as on, and a holdout is ended: all sessions are condensed by the main condenser
)

// modeWords says for people what each mode means, in the order in which a form offers them.
var modeWords = []struct {
	mode  Mode
	words string
}{
	{ModeOff, "off: everything is forwarded as it is"},
	{ModeObserve, "observed only: nothing is changed"},
	{ModeOn, "on"},
	{ModeMain, "on for all sessions: a holdout is ended"},
}

// words says for people what a mode means.
func (m Mode) words() string {
	for _, one := range modeWords {
		if one.mode == m {
			return one.words
		}
	}
	return string(m)
}

// modeNames returns the names of all modes.
func modeNames() (names []string) {
	for _, one := range modeWords {
		names = append(names, string(one.mode))
	}
	return names
}

// Override is a mode that overrides the configuration on all replicas for a limited time. Its times are in UTC, so that decoded overrides can
// be compared with ==. Of two for the same tenant, the one that was set later counts. One without a mode says that earlier ones were removed.
type Override struct {
	Tenant string    `json:"tenant"` // empty: all tenants
	Mode   Mode      `json:"mode"`   // empty: the configuration counts
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	From   string    `json:"from"` // remote address of the request that set it
	Reason string    `json:"reason,omitempty"`
}

// Encode returns the stored form of an override.
func (l Override) Encode() []byte {
	text, _ := json.Marshal(l) // strings and times: cannot fail
	return text
}

// DecodeOverride decodes the stored form of an override. It returns the zero Override, which has expired, if text is not valid.
func DecodeOverride(text []byte) (l Override) {
	if json.Unmarshal(text, &l) != nil {
		return Override{}
	}
	return l
}

// Condensing is a tenant's configured mode, the mode in force, and the override that makes the difference.
type Condensing struct {
	Configured Mode      `json:"configured"`
	InForce    Mode      `json:"in_force"`
	Override   *Override `json:"override,omitempty"` // nil: the configured mode is in force
}

type overrideRequest struct {
	Mode   Mode   `json:"mode"`
	For    string `json:"for"`
	Reason string `json:"reason"`
}

type tenantCondensing struct {
	Tenant string `json:"tenant"`
	Condensing
}

type condensingBody struct {
	Overrides []Override         `json:"overrides"`
	Tenants   []tenantCondensing `json:"tenants"`
}

// condensing lists the overrides, and the mode of each tenant.
func (a *api) condensing(r *http.Request, _ *query) (any, error) {
	modes := rows(a.tenantsOf(who(r)), func(t Tenant) tenantCondensing { return tenantCondensing{t.Name, t.Condensing} })
	overrides := slices.DeleteFunc(a.o.Settings.Overrides(), func(o Override) bool { return o.Tenant != "" && !who(r).sees(o.Tenant) })
	return condensingBody{Overrides: overrides, Tenants: modes}, nil
}

// Bounds of an override.
const (
	minOverrideTime = time.Minute
	maxOverrideTime = 30 * 24 * time.Hour
)

// setOverride sets the override of a tenant, or the one for all tenants.
func (a *api) setOverride(r *http.Request, q *query) (any, error) {
	tenant, err := a.overrideTenant(r, q)
	if err != nil {
		return nil, err
	}
	var asked overrideRequest
	if err := a.readBody(r, &asked); err != nil {
		return nil, fault(http.StatusBadRequest, "invalid_body", `Send {"mode": "off", "for": "2h", "reason": "..."}.`)
	}
	duration, err := asked.check()
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	if err := a.noteMode(r, tenant, string(asked.Mode), asked.Reason); err != nil {
		return nil, err
	}
	override := Override{Tenant: tenant, Mode: asked.Mode, Since: now, Until: now.Add(duration), From: r.RemoteAddr, Reason: asked.Reason}
	if err := a.o.Settings.SetOverride(r.Context(), override); err != nil {
		return nil, err // it names its operation
	}
	return override, nil
}

// check returns how long the override is asked for, or what is wrong with the request.
func (o *overrideRequest) check() (time.Duration, error) {
	if !slices.Contains(modeNames(), string(o.Mode)) {
		return 0, badParam("mode", "Give on, observe, off or main.")
	}
	if len(o.Reason) > maxTextBytes || strings.ContainsFunc(o.Reason, func(c rune) bool { return c < ' ' }) {
		return 0, badParam("reason", "Give a single line of at most %d bytes.", maxTextBytes)
	}
	duration, err := time.ParseDuration(o.For)
	if err != nil || duration < minOverrideTime || duration > maxOverrideTime {
		return 0, badParam("for", "Give a duration from 1m to 720h, such as 2h30m. For a permanent change, edit the configuration.")
	}
	return duration, nil
}

// dropOverride removes an override.
func (a *api) dropOverride(r *http.Request, q *query) (any, error) {
	tenant, err := a.overrideTenant(r, q)
	if err != nil {
		return nil, err
	}
	if err := a.noteMode(r, tenant, asConfigured, ""); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	removal := Override{Tenant: tenant, Since: now, Until: now.Add(maxOverrideTime), From: r.RemoteAddr} // until every earlier one has ended
	return nil, a.o.Settings.SetOverride(r.Context(), removal)                                           // it names its operation
}

// overrideTenant returns the configured tenant named in the path; "" if the path is that of all tenants.
func (a *api) overrideTenant(r *http.Request, q *query) (string, error) {
	if r.PathValue("tenant") == "" {
		return "", nil
	}
	name := q.id(r, "tenant")
	if q.err != nil {
		return "", q.err
	}
	if !who(r).sees(name) {
		return "", fault(http.StatusForbidden, "not_permitted", "The token does not open this tenant.")
	}
	return a.resolveTenant(name)
}

// asConfigured is the mode that removes an override.
const asConfigured = "as configured"

func (a *api) noteMode(r *http.Request, tenant, mode, reason string) error {
	return a.note(r, AuditEntry{Did: "set condensing to " + mode, Change: true, Tenant: tenant, Detail: reason})
}
