package config

// TenantLimits bound what one tenant may take of one replica; 0 is no bound.
type TenantLimits struct {
	Concurrent        int   `yaml:"concurrent"` // requests under way, answers that are still coming included
	MaxBody           Bytes `yaml:"max_body"`   // of one request
	RequestsPerMinute int   `yaml:"requests_per_minute"`
	TokensPerMinute   int   `yaml:"tokens_per_minute"` // of what is forwarded and answered
}

// LimitsFor returns the tenant's own limits, all of them, or the default ones.
func (c *Config) LimitsFor(t Tenant) TenantLimits {
	if t.Limits != nil {
		return *t.Limits
	}
	return c.Limits.Tenant
}

func (v *validator) tenantLimits(key string, l TenantLimits) {
	for _, part := range []struct {
		name string
		n    int
	}{{"concurrent", l.Concurrent}, {"requests_per_minute", l.RequestsPerMinute}, {"tokens_per_minute", l.TokensPerMinute}} {
		if part.n < 0 {
			v.add(key+"."+part.name, "is negative: write a number, or 0 for no limit")
		}
	}
	switch {
	case l.MaxBody < 0:
		v.add(key+".max_body", "is negative: write a size as 4MiB, or 0 for limits.max_body")
	case l.MaxBody > v.config.Limits.MaxBody:
		v.add(key+".max_body", "is above limits.max_body, which no request may pass: lower it, or raise that")
	}
}
