// Package config defines Dewpoint's settings: plain structs with defaults, a validation that reports all problems at once, and the effective
// configuration as YAML or JSON. The struct tags are the keys. Package config/source reads settings from files, the environment and flags.
package config

import (
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/secret"
)

// Config is the whole configuration. The zero value is not valid: start from Default or source.Load.
// A Config is read-only once loaded and may then be shared between goroutines.
type Config struct {
	Listen     string                `yaml:"listen"` // host:port of the data listener
	Admin      Admin                 `yaml:"admin"`
	Upstream   Upstream              `yaml:"upstream"`
	Store      Store                 `yaml:"store"`
	LLMs       map[string]LLM        `yaml:"llms"`   // condenser models, by the name that llm_config uses
	Models     map[string]model.Info `yaml:"models"` // limits and prices of request models, before the built-in table
	Condenser  Condenser             `yaml:"condenser"`
	Observe    bool                  `yaml:"observe"`               // Tenant.Observe of tenants that do not set it
	Notify     bool                  `yaml:"notify"`                // Tenant.Notify of the default tenant, which exists only if no tenants are configured
	Tenants    []Tenant              `yaml:"tenants,omitempty"`     // including those of TenantsDir; none: one tenant "default" that accepts any key
	TenantsDir string                `yaml:"tenants_dir,omitempty"` // a folder with a file for each further tenant, or folders of such files
	CORS       CORS                  `yaml:"cors"`
	Session    Session               `yaml:"session"`
	Limits     Limits                `yaml:"limits"`
	Shutdown   Shutdown              `yaml:"shutdown"`
	Log        Log                   `yaml:"log"`

	// More fields of the default tenant: see Tenant.
	LogContent bool      `yaml:"log_content"`
	Holdout    Holdout   `yaml:"holdout"`
	Knowledge  Knowledge `yaml:"knowledge"`
	Memory     Memory    `yaml:"memory"`

	TenantsTrusted bool     `yaml:"tenants_trusted"`         // files of TenantsDir may name other files, environment variables and any address
	TenantsHosts   []string `yaml:"tenants_hosts,omitempty"` // the only hosts that they may name if they are not trusted, see hosts.Parse

	// Warnings lists what Load found in a valid configuration that cannot be meant or has no effect, for a caller to report.
	Warnings Problems `yaml:"-" json:"-"`

	// Refused lists the tenants whose files in TenantsDir have problems. Tenants has the last good version of those that are Kept.
	Refused []Refused `yaml:"-"`
}

// Refused is a tenant whose file in TenantsDir has problems.
type Refused struct {
	Key      string   // of the file
	Name     string   // of the tenant; empty if the file's is not a valid one
	APIKeys  []APIKey // those that could be read
	LastGood *Tenant  // the last good version of the tenant; nil: none since the process started
	Kept     bool     // LastGood is in Config.Tenants
	Problems Problems
}

// Admin is the listener for health, metrics and the admin API.
type Admin struct {
	Listen string `yaml:"listen"`
	Token  Secret `yaml:"token"` // of an operator. It or Tokens are required when Listen is not a loopback address

	// Tokens are further tokens, with less rights or for some tenants only.
	Tokens []AdminToken `yaml:"tokens,omitempty"`

	// Hosts lists the host names that requests may use for the listener while there is no token, in addition to those of loopback.
	Hosts []string `yaml:"hosts"`
}

// The values of AdminToken.Role.
const (
	RoleViewer   = "viewer"   // sees figures
	RoleAuditor  = "auditor"  // reads content as well
	RoleOperator = "operator" // changes things as well
)

// AdminToken is a token of the admin listener, given as its SHA-256 or as the name of the environment variable that holds it.
type AdminToken struct {
	Name    string   `yaml:"name"` // of its owner, for the audit log
	SHA256  string   `yaml:"sha256,omitempty"`
	Env     string   `yaml:"env,omitempty"`
	Role    string   `yaml:"role"`
	Tenants []string `yaml:"tenants,omitempty"` // whose sessions it opens; none: all

	// Value is the content of the variable when the configuration was loaded.
	Value Secret `yaml:"-"`
}

// Key returns the token as a key.
func (t AdminToken) Key() APIKey { return APIKey{SHA256: t.SHA256, Env: t.Env, Value: t.Value} }

// Locked reports whether the listener requires a token.
func (a *Admin) Locked() bool { return a.Token != "" || len(a.Tokens) > 0 }

// Upstream is where requests are forwarded. In a Tenant, an empty field is inherited: see Config.UpstreamFor.
//
// BaseURL is for the requests of all protocols. If it is empty, each goes to its own provider, and APIKey is OpenAI's. A provider with a
// section of its own is called as that says.
type Upstream struct {
	BaseURL string        `yaml:"base_url"`
	APIKey  Secret        `yaml:"api_key"` // empty: the client's own Authorization is forwarded
	Timeout time.Duration `yaml:"timeout"` // the longest a whole answer may take; 0: no limit

	// AlternateRoles is set for an upstream that does not accept two successive messages with the same role. It need not be set if the
	// upstream says so in an error.
	AlternateRoles bool `yaml:"alternate_roles"`

	// Compaction says who compacts a history when a client asks upstream to. Empty: CompactionAuto.
	Compaction string `yaml:"compaction,omitempty"`

	OpenAI    Provider `yaml:"openai,omitempty"`
	Anthropic Provider `yaml:"anthropic,omitempty"`
	ChatGPT   Provider `yaml:"chatgpt,omitempty"` // for Codex with a ChatGPT account
	Gemini    Provider `yaml:"gemini,omitempty"`
}

// Provider is where the requests that are meant for one provider go. An empty field is inherited: see Config.UpstreamFor.
type Provider struct {
	BaseURL string `yaml:"base_url"`
	APIKey  Secret `yaml:"api_key"`
}

// The values of Upstream.Compaction.
const (
	CompactionAuto   = "auto"   // upstream, or the proxy if upstream turns out not to support it
	CompactionPass   = "pass"   // upstream
	CompactionAnswer = "answer" // the proxy
)

// Store says where sessions are stored. MaxSize limits the embedded store: above it, whole threads are deleted, the least recently seen
// first. Redis is limited by its own maxmemory instead.
type Store struct {
	Type    string        `yaml:"type"`     // StoreEmbedded or StoreRedis
	Path    string        `yaml:"path"`     // the embedded store's file; empty: state.db in the user's state folder
	TTL     time.Duration `yaml:"ttl"`      // an idle session is deleted after this time
	Timeout time.Duration `yaml:"timeout"`  // how long a request waits before it goes on without the store
	MaxSize limit.Bytes   `yaml:"max_size"` // 0: no cap
	Secret  Secret        `yaml:"secret"`   // keys every hash; empty: the store generates and keeps one
	Content bool          `yaml:"content"`  // store payloads; false: only digests and counts
	Records bool          `yaml:"records"`  // store the texts of condensations; false: they are in memory only
	Redis   Redis         `yaml:"redis"`

	Encryption Encryption `yaml:"encryption"`
}

// The values of Store.Type.
const (
	StoreEmbedded = "embedded"
	StoreRedis    = "redis"
)

// DefaultStoreSize is the default cap of the embedded store. It is enough for about 1.5 million messages of 1 KB in stored form, or thousands
// of long agent runs, so that on one machine the TTL usually deletes them first. The file, which may grow to 1.5 times this size, still fits
// on a small machine's disk.
const DefaultStoreSize limit.Bytes = 4 << 30

// Secret is a string that is shown as Redacted.
type Secret = secret.Value

// Redacted is shown in place of a secret. An empty secret is shown as empty.
const Redacted = secret.Redacted

// LLM is a condenser model. See Config.LLMFor for the meaning of empty fields.
type LLM struct {
	Model       string        `yaml:"model"`
	API         string        `yaml:"api,omitempty"` // the protocol, as package protocols names it; empty: the request's at the request's upstream, the usual one elsewhere
	BaseURL     string        `yaml:"base_url"`
	APIKey      Secret        `yaml:"api_key"`
	Timeout     time.Duration `yaml:"timeout"`               // of one call; 0: Limits.SummariserTimeout
	MaxOutput   int           `yaml:"max_output"`            // tokens; 0: the condenser decides
	Temperature *float64      `yaml:"temperature,omitempty"` // nil: not sent

	// ReasoningEffort is how much the model reasons, in the server's word; empty: the least that the model is known to offer.
	ReasoningEffort string `yaml:"reasoning_effort,omitempty"`
}

// DefaultTenant is the name of the tenant of all clients if no tenants are configured.
const DefaultTenant = "default"

// Tenant is one group of API keys with its own upstream key and condenser.
type Tenant struct {
	Key       string     `yaml:"-" json:"-"` // of its section, such as tenants.team-a; empty: its index in tenants
	Confined  bool       `yaml:"-" json:"-"` // its file in TenantsDir is not trusted: its addresses must be in Config.TenantsHosts
	Kept      bool       `yaml:"-" json:"-"` // the last good version of its file in TenantsDir, which now has problems
	Name      string     `yaml:"name"`
	APIKeys   []APIKey   `yaml:"api_keys"`
	Upstream  Upstream   `yaml:"upstream"`
	Condenser *Condenser `yaml:"condenser,omitempty"` // nil: Config.Condenser
	Observe   *bool      `yaml:"observe,omitempty"`   // decide and report, but forward requests unchanged; nil: Config.Observe
	Notify    bool       `yaml:"notify"`              // send clients a sentence about what was condensed
	Gateway   bool       `yaml:"gateway"`             // its keys are a gateway's, which may name another tenant by the hash of a client's key

	Knowledge  Knowledge     `yaml:"knowledge"`
	Memory     Memory        `yaml:"memory"`
	LogContent bool          `yaml:"log_content"` // log requests and answers in full
	Holdout    Holdout       `yaml:"holdout"`
	Limits     *limit.Tenant `yaml:"limits,omitempty"` // nil: Limits.Tenant
}

// Holdout is a share of a tenant's sessions that is not condensed, or by another condenser, for comparison. In a file, a number is its share.
type Holdout struct {
	Share     float64    `yaml:"share"`               // 0: none
	Condenser *Condenser `yaml:"condenser,omitempty"` // nil: these sessions are not condensed
}

// Memory is where the findings of condensations are sent: to a file, a webhook or an MCP server, or if none is set, nowhere.
type Memory struct {
	File    string  `yaml:"file"` // JSON Lines
	Webhook Webhook `yaml:"webhook"`
	MCP     MCP     `yaml:"mcp"`

	MaxPending int           `yaml:"max_pending"` // condensations that wait for delivery; 0: DefaultPending
	MaxAge     time.Duration `yaml:"max_age"`     // how long delivery is tried; 0: DefaultPendingAge
}

// Webhook is an HTTP service that receives findings.
type Webhook struct {
	URL    Secret `yaml:"url"`    // a secret, since many such URLs are all that a caller needs
	Secret Secret `yaml:"secret"` // signs the requests; empty: unsigned
}

// MCP is an MCP server that receives findings.
type MCP struct {
	URL       string `yaml:"url"` // of a server with the streamable HTTP transport
	APIKey    Secret `yaml:"api_key"`
	Tool      string `yaml:"tool"`      // empty: findings.DefaultTool
	Arguments string `yaml:"arguments"` // of the tool: JSON with placeholders; empty: findings.DefaultArguments
}

// Defaults of Memory.MaxPending and Memory.MaxAge.
const (
	DefaultPending    = 10_000
	DefaultPendingAge = 72 * time.Hour
)

// Set reports whether findings are sent anywhere.
func (m *Memory) Set() bool {
	return m.File != "" || m.Webhook.URL != "" || m.MCP.URL != ""
}

// Knowledge is a folder of texts that are added to a conversation when the user's words match their triggers.
type Knowledge struct {
	Folder    string `yaml:"folder"`     // empty: none
	MaxTokens int    `yaml:"max_tokens"` // limit for a conversation; 0: DefaultKnowledge

	Also []KnowledgeSet `yaml:"also,omitempty"` // further folders, each for some requests
}

// Set reports whether there is any.
func (k *Knowledge) Set() bool { return k.Folder != "" || k.MaxTokens != 0 || len(k.Also) > 0 }

// KnowledgeSet is a folder of texts for requests that have a header or a session key. If both are given, both have to fit.
type KnowledgeSet struct {
	Folder   string `yaml:"folder"`
	Header   string `yaml:"header"`   // a header and its value, such as "X-Project: web"
	Sessions string `yaml:"sessions"` // a pattern of session keys, as path.Match reads it
}

// HeaderValue returns the name and the value of Header.
func (s KnowledgeSet) HeaderValue() (name, value string) {
	name, value, _ = strings.Cut(s.Header, ":")
	return strings.TrimSpace(name), strings.TrimSpace(value)
}

// DefaultKnowledge is the default of Knowledge.MaxTokens.
const DefaultKnowledge = 4000

// APIKey is a key that clients of a tenant may send, given as its SHA-256 or as the name of the environment variable that holds it.
type APIKey struct {
	SHA256 string `yaml:"sha256,omitempty"`
	Env    string `yaml:"env,omitempty"`

	// Value is the content of the variable when the configuration was loaded.
	Value Secret `yaml:"-"`
}

// CORS says which web pages may use the proxy from a browser.
type CORS struct {
	Origins []string `yaml:"origins,omitempty"` // such as https://app.example.com, or * for all; empty: none; nil: see the documentation
}

// Session says which headers and body fields name a session. An empty list stands for the built-in one.
type Session struct {
	Headers        []string `yaml:"headers"`
	BodyFields     []string `yaml:"body_fields"`
	PromptCacheKey bool     `yaml:"prompt_cache_key"` // use prompt_cache_key as a session key, too
}

// Limits bounds memory and waiting.
type Limits struct {
	MaxBody       limit.Bytes `yaml:"max_body"`        // one request body
	BytesInFlight limit.Bytes `yaml:"bytes_in_flight"` // all request bodies together; 0: see Limits.InFlight
	MaxHeader     limit.Bytes `yaml:"max_header"`

	Tenant limit.Tenant `yaml:"tenant"` // of each tenant without limits of its own

	UpstreamResponseHeaderTimeout time.Duration `yaml:"upstream_response_header_timeout"` // since upstream last took a part of the body; 0: no limit
	StreamIdleTimeout             time.Duration `yaml:"stream_idle_timeout"`              // 0: no limit
	StreamKeepAlive               time.Duration `yaml:"stream_keep_alive"`                // between comments to a waiting stream; 0: no comments
	SummariserTimeout             time.Duration `yaml:"summariser_timeout"`
}

// DefaultInFlight is the default of Limits.BytesInFlight if memory is not limited.
const DefaultInFlight limit.Bytes = 512 << 20

// InFlight returns how many bytes of request bodies may be in memory at one time. It is BytesInFlight if that is set, otherwise a quarter of
// memory, at least MaxBody and at most DefaultInFlight. It is a quarter because a body may be in memory together with its rewritten copy, its
// new part that is being logged, and the garbage of both. memory is what the process may use, in bytes; 0 means that there is no limit.
func (l Limits) InFlight(memory int64) limit.Bytes {
	switch {
	case l.BytesInFlight > 0:
		return l.BytesInFlight
	case memory > 0:
		return max(l.MaxBody, min(limit.Bytes(memory/4), DefaultInFlight))
	}
	return max(l.MaxBody, DefaultInFlight)
}

// Shutdown is how the process ends after SIGTERM.
type Shutdown struct {
	Delay   time.Duration `yaml:"delay"`   // how long the process reports that it is not ready, but still serves, until load balancers have noticed
	Timeout time.Duration `yaml:"timeout"` // how long running requests may take to end, after Delay
}

// Log configures the process's log.
type Log struct {
	Level    string `yaml:"level"`    // debug, info, warn or error
	Format   string `yaml:"format"`   // FormatAuto, FormatJSON or FormatConsole
	Requests bool   `yaml:"requests"` // log a line for each request, at level info
}

// The values of Log.Format.
const (
	FormatAuto    = "auto"    // console on a terminal, JSON elsewhere
	FormatJSON    = "json"    // lines for machines
	FormatConsole = "console" // lines for people
)

// Default returns the configuration that is used if nothing is configured.
func Default() *Config {
	return &Config{
		Listen: "127.0.0.1:8080",
		Admin:  Admin{Listen: "127.0.0.1:9090"},
		Store: Store{
			Type:    StoreEmbedded,
			TTL:     30 * 24 * time.Hour,
			Timeout: time.Second,
			Content: true,
			Records: true,
			MaxSize: DefaultStoreSize,
			Redis:   Redis{Addrs: []string{"127.0.0.1:6379"}},
		},
		LLMs:      map[string]LLM{},
		Models:    map[string]model.Info{},
		Condenser: catalogue.Default(catalogue.TypeExcerpts), // calls no model
		Limits: Limits{
			MaxBody:                       64 << 20,
			MaxHeader:                     16 << 10, // each idle connection keeps a buffer of this size
			UpstreamResponseHeaderTimeout: 10 * time.Minute,
			StreamIdleTimeout:             5 * time.Minute,
			StreamKeepAlive:               5 * time.Second,
			SummariserTimeout:             30 * time.Second,
		},
		Shutdown: Shutdown{Delay: 5 * time.Second, Timeout: 5 * time.Minute},
		Log:      Log{Level: "info", Format: FormatAuto, Requests: true},
	}
}
