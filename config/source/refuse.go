package source

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// refuseTenants takes the tenants whose files have problems out of the configuration, see config.Refused. It returns all problems if one of
// them is not in such a file.
func (p *problems) refuseTenants(cfg *config.Config, src Input) error {
	for list := p.list; len(list) > 0; list = p.again(cfg, src) {
		files, all := byFile(cfg, list)
		if !all {
			return list.Err()
		}
		cfg.Refuse(files, src.InForce)
	}
	return nil
}

// byFile sorts problems by the key of the tenant's file that they are in. all is false if one is in none.
func byFile(cfg *config.Config, list config.Problems) (files map[string]config.Problems, all bool) {
	files = map[string]config.Problems{}
	for _, problem := range list {
		i := slices.IndexFunc(cfg.Tenants, func(t config.Tenant) bool { return t.InFile() && within(problem.Key, t.Key) })
		if i < 0 {
			return nil, false
		}
		t := cfg.Tenants[i]
		if t.Kept {
			problem.Origin = "its last good version"
		}
		files[t.Key] = append(files[t.Key], problem)
	}
	return files, true
}

// again returns the problems of a configuration from which tenants were taken out. Each round takes out another tenant, or finds none.
func (p *problems) again(cfg *config.Config, src Input) config.Problems {
	found := problems{origins: p.origins}
	found.merge(cfg.Validate(), within)
	if len(found.list) == 0 {
		found.check(cfg, src)
	}
	return found.list
}

// check adds the problems that Input.Check finds.
func (p *problems) check(cfg *config.Config, src Input) {
	if src.Check != nil {
		p.merge(src.Check(cfg), func(key, earlier string) bool { return within(key, earlier) || within(earlier, key) })
	}
}
