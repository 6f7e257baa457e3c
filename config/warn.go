package config

import (
	"maps"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/hosts"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// FindWarnings returns settings that are valid but cannot be meant, or have no effect. It expects a configuration without problems. Each
// message says what is wrong, its consequence, and what to write.
func (c *Config) FindWarnings() Problems {
	w := &warner{validator{config: c}}
	w.addresses()
	w.store()
	w.models()
	w.condensers()
	w.llms()
	w.tenants()
	w.limits()
	return w.list
}

type warner struct{ validator }

// addresses warns of connections over the internet without TLS.
func (w *warner) addresses() {
	c := w.config
	all := Tenant{Upstream: c.Upstream, Condenser: &c.Condenser, Memory: c.Memory}.Addresses("")
	for _, name := range slices.Sorted(maps.Keys(c.LLMs)) {
		all = append(all, Address{syntax.Join("llms", name) + ".base_url", c.LLMs[name].BaseURL})
	}
	for i, t := range c.Tenants {
		all = append(all, t.Addresses(tenantKey(i, t)+".")...)
	}
	for _, a := range all {
		w.when(strings.HasPrefix(strings.ToLower(a.URL), "http:") && OverInternet(a.URL), a.Key,
			"begins with http:// and names a host on the internet, so that keys and conversations are sent without encryption: write https://")
	}
}

// OverInternet reports whether the host of a URL is a public address, or a name that is not one of a private network by its form.
func OverInternet(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		return hosts.Public(ip)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !strings.Contains(host, ".") {
		return false
	}
	private := []string{".localhost", ".local", ".internal", ".lan", ".home", ".home.arpa", ".corp", ".intranet", ".private", ".svc", ".test", ".example"}
	return !slices.ContainsFunc(private, func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}

func (w *warner) store() {
	s, usual := w.config.Store, Default().Store
	redis := s.Type == StoreRedis
	w.when(redis && s.Path != usual.Path, "store.path", "has no effect with store.type redis: remove it")
	w.when(!redis && !reflect.DeepEqual(s.Redis, usual.Redis), "store.redis", "has no effect with store.type embedded: set store.type to redis, or remove it")
	w.bytes("store.max_size", s.MaxSize, 1<<20, "so that sessions are forgotten at once", "4GiB")
}

// Context windows that a model can be meant to have, in tokens.
const minWindow, maxWindow = 1000, 100_000_000

func (w *warner) models() {
	for _, name := range slices.Sorted(maps.Keys(w.config.Models)) {
		window, key := w.config.Models[name].ContextWindow, syntax.Join("models", name)+".context_window"
		w.when(window < minWindow, key, "is %d tokens, so that every request counts as too long and is condensed: write %d if thousands are meant",
			window, 1000*window)
		w.when(window > maxWindow, key, "is %d tokens, more than any model has, so that nothing is condensed for it before upstream refuses a request: write tokens, not bytes", window)
	}
}

// condensers warns about the condensers of the operator and of the tenants.
func (w *warner) condensers() {
	w.condenser("condenser", w.config.Condenser)
	for i, t := range w.config.Tenants {
		if t.Condenser != nil {
			w.condenser(tenantKey(i, t)+".condenser", *t.Condenser)
		}
	}
}

func (w *warner) condenser(key string, c Condenser) {
	e := c.Entry()
	w.maxTokens(key+".max_tokens", c.MaxTokens, e)
	for _, name := range slices.Sorted(maps.Keys(c.PerModel)) {
		if own := c.PerModel[name].MaxTokens; own != nil {
			w.maxTokens(syntax.Join(key+".per_model", name)+".max_tokens", *own, e)
		}
	}
	w.when(e.Asks() && c.Wait == catalogue.WaitNever && c.Deadline != catalogue.Default(c.Type).Deadline,
		key+".deadline", "has no effect with wait: never, under which no request waits: set wait to deadline, or remove it")
	w.summariser(key+".llm_config", c)
	for i, stage := range c.Condensers {
		w.condenser(syntax.Index(key+".condensers", i), stage)
	}
}

// Below these, no limit in tokens, and no share of a window, can be meant. A system prompt and tools alone are more.
const minTokens, minShare = 1000, 0.01

func (w *warner) maxTokens(key string, n float64, e catalogue.Entry) {
	if n == 0 || n >= minShare && n <= 1 || n > minTokens {
		return
	}
	consequence := "which every request of an agent exceeds, so that each step is condensed"
	if !e.Rolling() {
		consequence = "so that hardly more than the newest step is shown"
	}
	if n < 1 {
		w.add(key, "is %v%% of the model's window, %s: write a share such as 0.75, or a number of tokens such as 100000", 100*n, consequence)
		return
	}
	if n <= 100 {
		w.add(key, "is %v tokens, %s: write %v for %v%% of the model's window, or %.0f if thousands are meant", n, consequence, n/100, n, 1000*n)
		return
	}
	w.add(key, "is %v tokens, %s: write %.0f if thousands are meant, or a share of the model's window such as 0.75", n, consequence, 1000*n)
}

// summariser warns if the model that a condenser calls has no known price. A model of one's own needs none: its calls are no money.
func (w *warner) summariser(key string, c Condenser) {
	llm, named := w.config.LLMFor(c.LLMConfig, Tenant{}, w.config.UpstreamFor(Tenant{}, General))
	if !named || c.LLMConfig == "" || !c.Entry().AsksModel() || !OverInternet(llm.BaseURL) {
		return
	}
	if info, _ := w.config.ModelFor(llm.Model); info.Price.Known() {
		return
	}
	consequence := "so that savings and budgets in dollars leave its calls out"
	if c.ByPrice() {
		consequence += ", and by price it counts as expensive as the request's own model"
	}
	w.add(key, "names %s, whose price is not known, %s: set %s.price", syntax.Join("llms", c.LLMConfig), consequence, syntax.Join("models", llm.Model))
}

// llms warns about models that no condenser calls.
func (w *warner) llms() {
	used := map[string]bool{}
	note := func(c Condenser) {
		for _, stage := range c.Stages() {
			used[stage.LLMConfig] = true
		}
	}
	note(w.config.Condenser)
	for _, t := range w.config.Tenants {
		if t.Condenser != nil {
			note(*t.Condenser)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.config.LLMs)) {
		w.when(!used[name], syntax.Join("llms", name), "has no effect, because no condenser names it: set llm_config to %s in a condenser, or remove it", name)
	}
}

func (w *warner) tenants() {
	c := w.config
	w.when(c.TenantsDir == "" && c.TenantsTrusted, "tenants_trusted", "has no effect without tenants_dir: set tenants_dir, or remove it")
	w.when(!c.HasTeamsFiles() && len(c.TenantsHosts) > 0, "tenants_hosts",
		"has no effect, because it restricts only files of tenants_dir that are not trusted: set tenants_dir and leave tenants_trusted false, or remove it")
	w.when(c.Admin.Locked() && len(c.Admin.Hosts) > 0, "admin.hosts", "has no effect while admin.token is set: remove one of them")
	for i, t := range c.EveryTenant() {
		key := "knowledge"
		if len(c.Tenants) > 0 {
			key = tenantKey(i, t) + ".knowledge"
		}
		w.when(c.Observes(t) && t.Knowledge.Set(), key, "has no effect with observe, under which requests are forwarded unchanged: remove one of them")
	}
}

func (w *warner) limits() {
	l := w.config.Limits
	const refused = "so that nearly every request is refused with status 413"
	w.bytes("limits.max_body", l.MaxBody, 64<<10, refused, "64MiB")
	w.bytes("limits.max_header", l.MaxHeader, 1<<10, "so that nearly every request is refused with status 431", "16KiB")
	w.bytes("limits.tenant.max_body", l.Tenant.Body, 64<<10, refused, "64MiB")
	for i, t := range w.config.Tenants {
		if t.Limits != nil {
			w.bytes(tenantKey(i, t)+".limits.max_body", t.Limits.Body, 64<<10, refused, "64MiB")
		}
	}
}

// bytes warns of a size below least. 0 stands for another value.
func (w *warner) bytes(key string, n, least limit.Bytes, consequence, usual string) {
	w.when(n > 0 && n < least, key, "is %d bytes, %s: write it with a unit, such as %s", n, consequence, usual)
}
