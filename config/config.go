// Package config holds Dewpoint's settings: plain structs with defaults, a pure validation that reports every problem at
// once, and what is in force as YAML or JSON. The keys are those of the struct tags. Package source, below, reads them
// from a file, the environment and flags.
package config

import (
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
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
	Observe    bool                  `yaml:"observe"`               // Tenant.Observe of each tenant that does not say
	Notify     bool                  `yaml:"notify"`                // Tenant.Notify of the one tenant where none are configured
	Tenants    []Tenant              `yaml:"tenants,omitempty"`     // those of TenantsDir as well; none: one tenant "default", any key passes
	TenantsDir string                `yaml:"tenants_dir,omitempty"` // a folder with a file for each further tenant, or folders of such files
	Session    Session               `yaml:"session"`
	Limits     Limits                `yaml:"limits"`
	Shutdown   Shutdown              `yaml:"shutdown"`
	Log        Log                   `yaml:"log"`

	LogContent  bool      `yaml:"log_content"`   // Tenant.LogContent of the one tenant where none are configured
	Holdout     float64   `yaml:"holdout"`       // Tenant.Holdout likewise
	KeepWarm    bool      `yaml:"keep_warm"`     // Tenant.KeepWarm likewise
	KeepWarmUSD float64   `yaml:"keep_warm_usd"` // Tenant.KeepWarmUSD likewise
	Knowledge   Knowledge `yaml:"knowledge"`     // Tenant.Knowledge, likewise
	Memory      Memory    `yaml:"memory"`        // Tenant.Memory, likewise

	TenantsTrusted bool `yaml:"tenants_trusted"` // files of TenantsDir may name programs, other files and environment variables

	// Unused names keys that were understood as OpenHands' own and have no effect here, for a caller to report.
	Unused []string `yaml:"-"`
}

// Admin is the listener for health, metrics and the admin API.
type Admin struct {
	Listen string `yaml:"listen"`
	Token  Secret `yaml:"token"` // required when Listen is not a loopback address

	// Hosts lists the host names, besides those of loopback, that requests may use for the listener while there is no token.
	Hosts []string `yaml:"hosts"`
}

// Upstream is where requests are forwarded. In a Tenant, an empty field is inherited: see Config.UpstreamFor.
type Upstream struct {
	BaseURL string        `yaml:"base_url"`
	APIKey  Secret        `yaml:"api_key"` // empty: the client's own Authorization is forwarded
	Timeout time.Duration `yaml:"timeout"` // the longest a whole answer may take; 0: no limit

	// AlternateRoles: it takes no two messages of a user, or of an assistant, in a row. Where it says so in an error it need not be set.
	AlternateRoles bool `yaml:"alternate_roles"`

	// Compaction says who compacts a history where a client asks upstream for that. Empty: CompactionAuto.
	Compaction string `yaml:"compaction,omitempty"`
}

// The values of Upstream.Compaction.
const (
	CompactionAuto   = "auto"   // upstream, or the proxy where upstream turns out not to
	CompactionPass   = "pass"   // upstream
	CompactionAnswer = "answer" // the proxy
)

// Store is where sessions are kept. MaxSize caps the embedded store: above it, the least recently seen threads are
// deleted first, each as a whole. Redis is capped by its own maxmemory instead.
type Store struct {
	Type    string        `yaml:"type"`     // StoreEmbedded or StoreRedis
	Path    string        `yaml:"path"`     // the embedded store's file
	TTL     time.Duration `yaml:"ttl"`      // an idle session is forgotten after this
	MaxSize limit.Bytes   `yaml:"max_size"` // 0: no cap
	Secret  Secret        `yaml:"secret"`   // seeds every hash; empty: the store makes and keeps its own
	Content bool          `yaml:"content"`  // keep payloads; false: digests and counts only
	Redis   Redis         `yaml:"redis"`

	Encryption Encryption `yaml:"encryption"`
}

// The values of Store.Type.
const (
	StoreEmbedded = "embedded"
	StoreRedis    = "redis"
)

// DefaultStoreSize is the cap of the embedded store: enough for about 1.5 million messages of 1 KB as stored, thousands
// of long agent runs, so that on one machine the TTL usually comes first; and little enough that the file, which may grow
// to half as much again, does not fill a small machine's disk.
const DefaultStoreSize limit.Bytes = 4 << 30

// The protocols that a condenser model is called in.
const (
	APIChat      = "chat"
	APIMessages  = "messages"
	APIResponses = "responses"
)

// LLM is a condenser model. See Config.LLMFor for what empty fields mean.
type LLM struct {
	Model       string        `yaml:"model"`
	API         string        `yaml:"api,omitempty"` // one of those above; empty: the request's at its own upstream, elsewhere APIChat
	BaseURL     string        `yaml:"base_url"`
	APIKey      Secret        `yaml:"api_key"`
	Timeout     time.Duration `yaml:"timeout"`               // of one call; 0: Limits.SummariserTimeout
	MaxOutput   int           `yaml:"max_output"`            // tokens; 0: the condenser decides
	Temperature *float64      `yaml:"temperature,omitempty"` // nil: not sent
}

// DefaultTenant is the name of the tenant of all clients where none are configured.
const DefaultTenant = "default"

// Tenant is one group of API keys with its own upstream key and condenser.
type Tenant struct {
	Key       string     `yaml:"-" json:"-"` // of its section, as tenants.team-a; empty: its index in tenants
	Name      string     `yaml:"name"`
	APIKeys   []APIKey   `yaml:"api_keys"`
	Upstream  Upstream   `yaml:"upstream"`
	Condenser *Condenser `yaml:"condenser,omitempty"` // nil: Config.Condenser
	Observe   *bool      `yaml:"observe,omitempty"`   // decide and report, but forward unchanged; nil: Config.Observe
	Notify    bool       `yaml:"notify"`              // tell the client in words what was condensed

	Knowledge   Knowledge     `yaml:"knowledge"`
	Memory      Memory        `yaml:"memory"`
	LogContent  bool          `yaml:"log_content"`      // log what its clients say and what they are answered
	KeepWarm    bool          `yaml:"keep_warm"`        // its prompts are kept in providers' caches while its clients pause
	KeepWarmUSD float64       `yaml:"keep_warm_usd"`    // that this may cost in a day of UTC; 0: DefaultKeepWarmUSD
	Holdout     float64       `yaml:"holdout"`          // share of its sessions that are left alone, to compare with; 0: none
	Limits      *limit.Tenant `yaml:"limits,omitempty"` // nil: Limits.Tenant
}

// Memory is where the findings of condensations go: to one of a file, a webhook and an MCP server. None: nowhere.
type Memory struct {
	File    string  `yaml:"file"` // JSON Lines
	Webhook Webhook `yaml:"webhook"`
	MCP     MCP     `yaml:"mcp"`

	MaxPending int           `yaml:"max_pending"` // condensations that wait to be told of; 0: DefaultPending
	MaxAge     time.Duration `yaml:"max_age"`     // for which delivery is tried; 0: DefaultPendingAge
}

// Webhook is an HTTP service that is told.
type Webhook struct {
	URL    Secret `yaml:"url"`    // many are one: who knows it may call it
	Secret Secret `yaml:"secret"` // signs what it is told; empty: unsigned
}

// MCP is an MCP server, by a command or a URL.
type MCP struct {
	Command   []string          `yaml:"command"`
	Env       map[string]Secret `yaml:"env"` // of the command, on top of what a program needs to run
	URL       string            `yaml:"url"` // of a server that speaks streamable HTTP
	APIKey    Secret            `yaml:"api_key"`
	Tool      string            `yaml:"tool"`      // empty: findings.DefaultTool
	Arguments string            `yaml:"arguments"` // of the tool, JSON with placeholders; empty: findings.DefaultArguments
}

// What Memory.MaxPending and Memory.MaxAge are where they are 0.
const (
	DefaultPending    = 10_000
	DefaultPendingAge = 72 * time.Hour
)

// Set reports whether there is one.
func (m *Memory) Set() bool {
	return m.File != "" || m.Webhook.URL != "" || m.MCP.URL != "" || len(m.MCP.Command) > 0
}

// DefaultKeepWarmUSD is Tenant.KeepWarmUSD where it is 0.
const DefaultKeepWarmUSD = 1

// Knowledge is a folder of texts that models are told when a person's words call for them.
type Knowledge struct {
	Folder    string `yaml:"folder"`     // empty: there are none
	MaxTokens int    `yaml:"max_tokens"` // that a conversation is told at most; 0: DefaultKnowledge
}

// DefaultKnowledge is Knowledge.MaxTokens where it is 0.
const DefaultKnowledge = 4000

// APIKey is one key that a client of a tenant may present: the SHA-256 of it, or the name of the environment variable
// that holds it.
type APIKey struct {
	SHA256 string `yaml:"sha256,omitempty"`
	Env    string `yaml:"env,omitempty"`

	// Value is the key that Env named when the configuration was loaded.
	Value Secret `yaml:"-"`
}

// Session is how a conversation is recognised. An empty list means the built-in one.
type Session struct {
	Headers        []string `yaml:"headers"`
	BodyFields     []string `yaml:"body_fields"`
	PromptCacheKey bool     `yaml:"prompt_cache_key"` // take prompt_cache_key as a session key too
}

// Limits bounds memory and waiting.
type Limits struct {
	MaxBody       limit.Bytes `yaml:"max_body"`        // one request body
	BytesInFlight limit.Bytes `yaml:"bytes_in_flight"` // all request bodies together; 0: see Limits.InFlight
	MaxHeader     limit.Bytes `yaml:"max_header"`

	Tenant limit.Tenant `yaml:"tenant"` // of each tenant that has none of its own

	UpstreamResponseHeaderTimeout time.Duration `yaml:"upstream_response_header_timeout"` // 0: no limit
	StreamIdleTimeout             time.Duration `yaml:"stream_idle_timeout"`              // 0: no limit
	StreamKeepAlive               time.Duration `yaml:"stream_keep_alive"`                // 0: streams wait in silence
	SummariserTimeout             time.Duration `yaml:"summariser_timeout"`
}

// DefaultInFlight is Limits.BytesInFlight where memory is not limited.
const DefaultInFlight limit.Bytes = 512 << 20

// InFlight is how many bytes of request bodies may be held: BytesInFlight, or where that is 0 a quarter of the memory
// that the process may use, at least MaxBody and at most DefaultInFlight. In the
// worst case a body comes with its rewritten copy, its new part on the way to the log, and the garbage of both. A memory of 0 is not limited.
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
	Delay   time.Duration `yaml:"delay"`   // not ready, but still serving, until balancers have noticed
	Timeout time.Duration `yaml:"timeout"` // then this long for requests under way
}

// Log is how the process logs: level debug, info, warn or error; format json or console.
type Log struct {
	Level    string `yaml:"level"`
	Format   string `yaml:"format"`
	Requests bool   `yaml:"requests"` // a line for each request, at level info
}

// Default returns the configuration of a Dewpoint that is started with nothing configured.
func Default() *Config {
	return &Config{
		Listen:   "127.0.0.1:8080",
		Admin:    Admin{Listen: "127.0.0.1:9090"},
		Upstream: Upstream{BaseURL: "https://api.openai.com/v1"},
		Store: Store{
			Type:    StoreEmbedded,
			Path:    "dewpoint.db",
			TTL:     30 * 24 * time.Hour,
			Content: true,
			MaxSize: DefaultStoreSize,
			Redis:   Redis{Addrs: []string{"127.0.0.1:6379"}},
		},
		LLMs:      map[string]LLM{},
		Models:    map[string]model.Info{},
		Condenser: defaultCondenser(),
		Limits: Limits{
			MaxBody:                       64 << 20,
			MaxHeader:                     16 << 10, // a kept connection holds this much
			UpstreamResponseHeaderTimeout: 10 * time.Minute,
			StreamIdleTimeout:             5 * time.Minute,
			StreamKeepAlive:               5 * time.Second,
			SummariserTimeout:             30 * time.Second,
		},
		Shutdown: Shutdown{Delay: 5 * time.Second, Timeout: 5 * time.Minute},
		Log:      Log{Level: "info", Format: "json", Requests: true},
	}
}
