package replay

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
)

// Choice says which condenser of a configuration a replay uses, and which of its limits the replay overrides.
type Choice struct {
	Tenant    string  // whose condenser; empty: that of the only tenant, or else of tenants without their own
	MaxSize   int     // condense above this number of events; 0: as configured
	MaxTokens float64 // condense above this number of tokens, up to 1: a share of the model's window; 0: as configured
}

// Flags adds the flags of a choice to a command.
func (c *Choice) Flags(fs *flag.FlagSet) {
	fs.StringVar(&c.Tenant, "tenant", "", "the tenant whose condenser to use (default: the only one, or else the condenser of tenants without their own)")
	fs.IntVar(&c.MaxSize, "max-size", 0, "condense above this number of events (0: as configured)")
	fs.Float64Var(&c.MaxTokens, "max-tokens", 0, "condense above this number of tokens (up to 1: share of the model's window; 0: as configured)")
}

// placeholder replaces the API keys of a configuration. No server receives them, but whether there is a key decides who pays for summaries.
const placeholder config.Secret = "placeholder"

// Settings returns a configuration with those parts of another that a replay needs: a condenser, the models, how conversations are recognised,
// and whether content is stored. The other parts would limit requests, add to them or call servers. Settings does not validate the result.
func Settings(from *config.Config, c Choice) (*config.Config, error) {
	tenant, err := tenantOf(from, c.Tenant)
	if err != nil {
		return nil, err
	}
	cfg := config.Default()
	cfg.Models, cfg.Session, cfg.Store.Content = from.Models, from.Session, from.Store.Content
	cfg.Condenser = from.CondenserFor(tenant)
	cfg.Condenser.MaxSize = cmp.Or(c.MaxSize, cfg.Condenser.MaxSize)
	cfg.Condenser.MaxTokens = cmp.Or(c.MaxTokens, cfg.Condenser.MaxTokens)
	up := from.UpstreamFor(tenant, config.General)
	if up.APIKey != "" {
		cfg.Upstream.APIKey = placeholder
	}
	cfg.LLMs = maps.Clone(from.LLMs)
	for name, llm := range cfg.LLMs {
		called, _ := from.LLMFor(name, tenant, up)
		llm.APIKey = "" // like that of the requests
		if called.APIKey != up.APIKey || called.BaseURL != up.BaseURL {
			llm.APIKey = placeholder // all models are called at one URL here, so only the key tells them apart
		}
		cfg.LLMs[name] = llm
	}
	return cfg, nil
}

// tenantOf returns the tenant of that name. Without a name it returns the only one, or a tenant without settings of its own.
func tenantOf(cfg *config.Config, name string) (config.Tenant, error) {
	for _, t := range cfg.EveryTenant() {
		if t.Name == name || name == "" && len(cfg.Tenants) <= 1 {
			return t, nil
		}
	}
	if name != "" {
		return config.Tenant{}, fmt.Errorf("the configuration has no tenant %q", name)
	}
	return config.Tenant{}, nil
}

// waiting returns a condenser for whose summaries requests wait, and which prepares none.
func waiting(c config.Condenser) config.Condenser {
	if c.Wait != "" {
		c.Wait, c.Deadline, c.BackgroundAt = catalogue.WaitDeadline, time.Minute, 0
	}
	c.PerModel = maps.Clone(c.PerModel)
	for name, override := range c.PerModel {
		override.BackgroundAt = nil
		c.PerModel[name] = override
	}
	c.Condensers = slices.Clone(c.Condensers)
	for i := range c.Condensers {
		c.Condensers[i] = waiting(c.Condensers[i])
	}
	return c
}
