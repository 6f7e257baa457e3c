package config

import (
	"crypto/sha256"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/dialect/protocols"
	"github.com/dewpoint-proxy/dewpoint/internal/hosts"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
)

// Bounds of Store.TTL and Store.Timeout, and the minimum length of Store.Secret in bytes.
const (
	minTTL     = time.Minute
	maxTTL     = 10 * 365 * 24 * time.Hour
	minTimeout = 50 * time.Millisecond
	maxTimeout = time.Minute
	minSecret  = 16
)

// maxPrice is far above what any model costs, in USD per million tokens.
const maxPrice = 10_000

// Validate returns all problems of the configuration as a Problems, nil if there are none. It does not look up files, host names or servers.
func (c *Config) Validate() error {
	v := &validator{config: c}
	v.listeners()
	v.upstream("upstream", c.Upstream)
	v.store()
	v.llms()
	v.models()
	v.condenser("condenser", c.Condenser, 0)
	v.tenants()
	v.origins()
	v.session()
	v.limits()
	v.notNegative("shutdown.delay", c.Shutdown.Delay)
	v.when(c.Shutdown.Timeout <= 0, "shutdown.timeout", "is not positive: write a duration such as 5m")
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", c.Log.Format, FormatAuto, FormatJSON, FormatConsole)
	return v.list.Err()
}

type validator struct {
	config *Config
	list   Problems
}

func (v *validator) add(key, format string, args ...any) { v.list.Add(key, format, args...) }

// when adds a problem if wrong is true.
func (v *validator) when(wrong bool, key, format string, args ...any) {
	if wrong {
		v.add(key, format, args...)
	}
}

func (v *validator) listeners() {
	c := v.config
	_, port, ok := v.address("listen", c.Listen, "8080")
	host, adminPort, adminOK := v.address("admin.listen", c.Admin.Listen, "9090")
	v.when(ok && adminOK && c.Listen == c.Admin.Listen && port != "0" && adminPort != "0",
		"admin.listen", "is the same address as listen: give the admin listener its own port")
	switch {
	case c.Admin.Locked():
	case adminOK && !loopback(host):
		v.add(adminTokenKey, "is missing while admin.listen is not on loopback: set a token, or listen on 127.0.0.1")
	case c.HasTeamsFiles():
		v.add(adminTokenKey, "is missing while teams write the files of tenants_dir: set a token, or set tenants_trusted to true if you trust every file")
	}
	v.headerValue(adminTokenKey, c.Admin.Token)
	v.adminTokens()
	for i, name := range c.Admin.Hosts {
		v.when(net.ParseIP(name) == nil && !plainBut(name, "."), // a name as in a Host header, without a port
			syntax.Index("admin.hosts", i), "is not a host name: write it without a scheme, port or path, as in dewpoint.internal")
	}
}

// adminTokenKey is the key of an operator's token.
const adminTokenKey = "admin.token"

// adminTokens checks the further tokens of the admin listener.
func (v *validator) adminTokens() {
	first := map[[sha256.Size]byte]string{}
	names := map[string]string{adminTokenKey: adminTokenKey} // the name of its holder in the audit log
	if token := v.config.Admin.Token.Reveal(); token != "" {
		first[sha256.Sum256([]byte(token))] = adminTokenKey
	}
	for i, t := range v.config.Admin.Tokens {
		key := syntax.Index("admin.tokens", i)
		v.when(!plainBut(t.Name, " .-_@"), key+".name", "is not a name: write who has the token, in letters, digits, spaces and . - _ @")
		v.when(names[t.Name] != "", key+".name", "is also the name of %s: the audit log could not tell them apart", names[t.Name])
		names[t.Name] = key
		v.when(!slices.Contains([]string{RoleViewer, RoleAuditor, RoleOperator}, t.Role), key+".role", "is not viewer, auditor or operator")
		for j, name := range t.Tenants {
			known := slices.ContainsFunc(v.config.EveryTenant(), func(o Tenant) bool { return o.Name == name })
			v.when(!known && !v.config.HasTeamsFiles(), syntax.Index(key+".tenants", j), "is not the name of a tenant: correct it")
		}
		if !v.apiKey(key, t.Key()) {
			continue
		}
		digest, _ := t.Key().Digest()
		v.when(first[digest] != "", key, "is also the token of %s: give each its own", first[digest])
		first[digest] = key
	}
}

// address splits host:port and checks that the port is a number. An empty host stands for every interface.
func (v *validator) address(key, address, usual string) (host, port string, ok bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		v.add(key, "is not host:port: write it as 127.0.0.1:%s", usual)
		return "", "", false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		v.add(key, "has no port between 0 and 65535: write it as 127.0.0.1:%s", usual)
		return "", "", false
	}
	return host, port, true
}

// plainBut reports whether name consists of plain characters (syntax.Plain) and the given others.
func plainBut(name, others string) bool {
	odd := func(r rune) bool { return !syntax.Plain(string(r)) && !strings.ContainsRune(others, r) }
	return name != "" && !strings.ContainsFunc(name, odd)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (v *validator) upstream(key string, up Upstream) {
	v.baseURL(key+".base_url", up.BaseURL)
	v.headerValue(key+".api_key", up.APIKey)
	for _, p := range provider.Names() {
		own := up.provider(p)
		v.baseURL(key+"."+string(p)+".base_url", own.BaseURL)
		v.headerValue(key+"."+string(p)+".api_key", own.APIKey)
	}
	v.notNegative(key+".timeout", up.Timeout)
	v.optional(key+".compaction", up.Compaction, CompactionAuto, CompactionPass, CompactionAnswer)
}

// baseURL checks that a URL contains the version of the API, but not a path that requests add.
func (v *validator) baseURL(key, text string) {
	u := v.url(key, text, "https://api.openai.com/v1", "set api_key")
	if u == nil {
		return
	}
	path := trimSlash(u.Path)
	for _, endpoint := range []string{"/chat/completions", "/messages", "/responses"} {
		v.when(strings.HasSuffix(path, endpoint), key, "ends with %s, which is added to it: remove that part", endpoint)
	}
	v.when(path == "" && (u.Host == "api.openai.com" || u.Host == "api.anthropic.com"), key, "has no version: write it as https://%s/v1", u.Host)
}

// url parses and checks a URL. It accepts an empty one, which is inherited or not needed. Problems do not show the URL, since it may contain
// a password. instead says what to do with the password.
func (v *validator) url(key, text, example, instead string) *url.URL {
	u, err := url.Parse(text)
	switch {
	case text == "":
	case err != nil:
		v.add(key, "is not a URL: write it as %s", example)
	case u.Scheme != "http" && u.Scheme != "https":
		v.add(key, "does not begin with http:// or https://: write it as %s", example)
	case u.Hostname() == "":
		v.add(key, "has no host: write it as %s", example)
	case u.User != nil:
		v.add(key, "contains a user name or password: remove it, and %s", instead)
	case u.Fragment != "":
		v.add(key, "contains a fragment: remove it")
	case u.Query().Has("key"):
		v.add(key, "contains a key in its query: remove it, and %s", instead)
	case u.Port() != "" && !validPort(u.Port()):
		v.add(key, "has no port between 1 and 65535: correct it, or leave it out")
	case linkLocal(u.Hostname()):
		v.add(key, "is a link-local address or another one where clouds serve credentials: name another address")
	}
	return u
}

func linkLocal(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && hosts.LinkLocal(ip)
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// headerValue refuses a secret that is not valid in a header. Most often it was read from a file with its newline.
func (v *validator) headerValue(key string, secret Secret) {
	odd := func(r rune) bool { return r <= ' ' || r == 0x7f }
	v.when(strings.ContainsFunc(secret.Reveal(), odd), key, "contains a space, line break or control character: write the key alone")
	name, dollar := strings.CutPrefix(secret.Reveal(), "$")
	v.when(dollar && syntax.VariableName(name) && name == strings.ToUpper(name), key, "begins with $ like a variable, which is not replaced: write it as ${NAME}")
}

func (v *validator) notNegative(key string, d time.Duration) {
	v.when(d < 0, key, "is negative: write a duration such as 30s")
}

func (v *validator) oneOf(key, value string, allowed ...string) {
	v.when(!slices.Contains(allowed, value), key, "is not one of %s: use one of them", strings.Join(allowed, ", "))
}

func (v *validator) optional(key, value string, allowed ...string) {
	if value != "" {
		v.oneOf(key, value, allowed...)
	}
}

func (v *validator) store() {
	s := v.config.Store
	v.oneOf("store.type", s.Type, StoreEmbedded, StoreRedis)
	v.when(s.TTL < minTTL || s.TTL > maxTTL, "store.ttl", "is not between %v and %v: write a duration such as 720h", minTTL, maxTTL)
	v.when(s.Timeout < minTimeout || s.Timeout > maxTimeout,
		"store.timeout", "is not between %v and %v: write a duration such as 1s", minTimeout, maxTimeout)
	v.when(s.Type == StoreRedis && s.MaxSize != DefaultStoreSize,
		"store.max_size", "is set together with type redis, which does not use it: remove it, and set maxmemory in the Redis server")
	v.when(s.Type != StoreRedis && s.MaxSize < 0, "store.max_size", "is negative: write a size such as 4GiB, or 0 for no cap")
	v.when(s.Secret != "" && len(s.Secret) < minSecret,
		"store.secret", "is shorter than %d characters: use a longer random one, or remove it", minSecret)
	if s.Type == StoreRedis {
		v.redis(s.Redis)
	}
	v.encryption("store.encryption", s.Encryption)
}

func (v *validator) llms() {
	for _, name := range slices.Sorted(maps.Keys(v.config.LLMs)) {
		llm, key := v.config.LLMs[name], syntax.Join("llms", name)
		v.when(name == "", key, "has an empty name: name it, as in llms.cheap")
		v.when(llm.Model == "", key+".model", "is missing: name the model to call")
		v.optional(key+".api", llm.API, protocols.Names()...)
		v.baseURL(key+".base_url", llm.BaseURL)
		v.headerValue(key+".api_key", llm.APIKey)
		v.notNegative(key+".timeout", llm.Timeout)
		v.llmOutput(key+".max_output", llm)
		if t := llm.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
			v.add(key+".temperature", "is not between 0 and 2: correct it, or remove it")
		}
		v.optional(key+".reasoning_effort", llm.ReasoningEffort, "none", "minimal", "low", "medium", "high", "xhigh", "max")
	}
}

// llmOutput checks that the model can write max_output tokens and that its window leaves room for a prompt.
func (v *validator) llmOutput(key string, llm LLM) {
	info, known := v.config.ModelFor(llm.Model)
	switch {
	case llm.MaxOutput < 0:
		v.add(key, "is negative: write a number of tokens, or 0 for the default")
	case known != "" && llm.MaxOutput > max(info.MaxOutput, 0):
		v.add(key, "is above the %d tokens that the model may write: lower it, or describe the model in models", info.MaxOutput)
	case llm.MaxOutput > 0 && llm.MaxOutput >= info.ContextWindow:
		v.add(key, "fills the model's window of %d tokens: lower it, or describe the model in models", info.ContextWindow)
	}
}

func (v *validator) models() {
	for _, name := range slices.Sorted(maps.Keys(v.config.Models)) {
		info, key := v.config.Models[name], syntax.Join("models", name)
		v.when(name == "", key, "has an empty name: name the model")
		v.when(info.ContextWindow <= 0, key+".context_window", "is not positive: write the window's size in tokens")
		v.when(info.MaxOutput <= 0 || info.MaxOutput > max(info.ContextWindow, 0),
			key+".max_output", "is not between 1 and context_window: write the longest answer in tokens")
		v.oneOf(key+".encoding", info.Encoding, model.EncodingO200k, model.EncodingCL100k)
		const negative = "is negative: write USD per million tokens"
		v.when(!(info.Price.Input >= 0), key+".price.input", negative)
		v.when(info.Price.Input == 0 && max(info.Price.CachedInput, info.Price.CacheWrite, info.Price.Output) > 0, key+".price.input",
			"is 0 or missing while another price is set, so that the model has no price: set it, or remove the others")
		v.when(!(info.Price.CachedInput >= 0), key+".price.cached_input", negative)
		v.when(!(info.Price.CacheWrite >= 0), key+".price.cache_write", negative)
		v.when(!(info.Price.Output >= 0), key+".price.output", negative)
		v.when(max(info.Price.Input, info.Price.CachedInput, info.Price.CacheWrite, info.Price.Output) > maxPrice, key+".price",
			"is above 10,000: prices are in USD per million tokens")
	}
}

func (v *validator) origins() {
	for i, origin := range v.config.CORS.Origins {
		u, err := url.Parse(origin)
		valid := err == nil && u.Scheme != "" && u.Host != "" && u.Scheme+"://"+u.Host == origin && strings.ToLower(origin) == origin && !strings.Contains(origin, "*")
		v.when(!valid && origin != "*", syntax.Index("cors.origins", i), "is not an origin: write it as https://app.example.com, in lower case without a path, or * for all")
	}
}

func (v *validator) session() {
	for i, name := range v.config.Session.Headers {
		key := syntax.Index("session.headers", i)
		switch {
		case !plainBut(name, "!#$%&'*+.^`|~"): // not a token (RFC 9110, section 5.6.2)
			v.add(key, "is not a header name: write it as x-session-id")
		case slices.Contains([]string{"x-client-request-id", "authorization", "cookie"}, strings.ToLower(name)):
			v.add(key, "does not identify a conversation: remove it")
		}
	}
	for i, name := range v.config.Session.BodyFields {
		key := syntax.Index("session.body_fields", i)
		v.when(name == "", key, "is empty: write it as metadata.session_id")
		v.when(name == "user", key, "does not identify a conversation: remove it")
	}
}

func (v *validator) limits() {
	l := v.config.Limits
	v.when(l.MaxBody <= 0, "limits.max_body", "is not positive: write a size such as 64MiB")
	v.when(l.MaxHeader <= 0, "limits.max_header", "is not positive: write a size such as 16KiB")
	v.when(l.BytesInFlight < 0, "limits.bytes_in_flight", "is negative: write a size such as 512MiB, or 0 to derive it from the memory")
	v.when(l.BytesInFlight > 0 && l.BytesInFlight < l.MaxBody,
		"limits.bytes_in_flight", "is below max_body: raise it, so that one request of max_body fits")
	v.notNegative("limits.upstream_response_header_timeout", l.UpstreamResponseHeaderTimeout)
	v.notNegative("limits.stream_idle_timeout", l.StreamIdleTimeout)
	v.notNegative("limits.stream_keep_alive", l.StreamKeepAlive)
	v.when(l.SummariserTimeout <= 0, "limits.summariser_timeout", "is not positive: write a duration such as 30s")
	v.tenantLimits("limits.tenant", l.Tenant)
}
