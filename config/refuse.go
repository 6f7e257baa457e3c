package config

import (
	"cmp"
	"slices"
)

// Refuse takes out the tenants in files that have problems, and notes them in Refused. problems holds those of each file by its key. If
// inForce, which may be nil, has a last good version of such a tenant, that version replaces it; one that has problems as well is taken out.
// The order of the tenants is then: the operator's own, last good versions in force, new versions, last good versions that were not in force.
func (c *Config) Refuse(problems map[string]Problems, inForce *Config) {
	var own, serving, fresh, returning []Tenant
	keep := func(t Tenant, serves bool) {
		switch {
		case slices.ContainsFunc(slices.Concat(serving, returning), func(k Tenant) bool { return k.Name == t.Name }):
		case serves:
			serving = append(serving, t)
		default:
			returning = append(returning, t)
		}
	}
	for _, t := range c.Tenants {
		found, refused := problems[t.Key]
		last, serves := inForce.lastGood(t.Name)
		switch {
		case !t.InFile():
			own = append(own, t)
		case !refused && t.Kept:
			keep(t, serves)
		case !refused:
			fresh = append(fresh, t)
		default:
			r := c.refusal(t)
			r.Problems = append(r.Problems, found...)
			if last == nil {
				continue
			}
			kept := *last
			kept.Key, kept.Kept = t.Key, true
			r.LastGood = &kept
			r.Kept = !t.Kept && (c.TenantsTrusted || kept.Confined) // one that is trusted may name what others may not
			if r.Kept {
				keep(kept, serves)
			}
		}
	}
	c.Tenants = slices.Concat(own, serving, fresh, returning)
	slices.SortFunc(c.Refused, func(a, b Refused) int { return cmp.Compare(a.Key, b.Key) })
}

// lastGood returns the last good version of a tenant in a file, nil if there is none, and whether it is in force.
func (c *Config) lastGood(name string) (last *Tenant, serves bool) {
	if c == nil {
		return nil, false
	}
	for i, t := range c.Tenants {
		if t.InFile() && t.Name == name {
			return &c.Tenants[i], true
		}
	}
	for _, r := range c.Refused {
		if r.LastGood != nil && r.LastGood.Name == name {
			return r.LastGood, false
		}
	}
	return nil, false
}

// Keys returns the API keys by which a tenant's clients are told that it is refused: those in its file and in its last good version.
func (r *Refused) Keys() []APIKey {
	if r.LastGood == nil {
		return r.APIKeys
	}
	return slices.Concat(r.APIKeys, r.LastGood.APIKeys)
}

// refusal returns a tenant's entry in Refused, which it adds if there is none.
func (c *Config) refusal(t Tenant) *Refused {
	if i := slices.IndexFunc(c.Refused, func(r Refused) bool { return r.Key == t.Key }); i >= 0 {
		return &c.Refused[i]
	}
	r := Refused{Key: t.Key}
	if validTenantName(t.Name) {
		r.Name = t.Name
	}
	for _, k := range t.APIKeys {
		if _, valid := k.Digest(); valid {
			r.APIKeys = append(r.APIKeys, k)
		}
	}
	c.Refused = append(c.Refused, r)
	return &c.Refused[len(c.Refused)-1]
}
