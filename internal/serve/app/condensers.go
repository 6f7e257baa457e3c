package app

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
)

// builder builds the condensers of a tenant.
type builder struct {
	config  *config.Config
	out     *calls
	tenant  string
	of      config.Tenant
	through http.RoundTripper  // sends its calls
	health  *summariser.Tenant // of the called models
	limits  limit.Tenant
	reuse   *condense.PromptReuse // shared by all stages
}

// Rolling implements catalogue.Dependencies.
func (b builder) Rolling(c config.Condenser, in condense.Input) condense.Settings {
	return b.settings(c, in, nil)
}

// Asking implements catalogue.Dependencies.
func (b builder) Asking(key string, c config.Condenser) (func(condense.Input) condense.LLMSettings, error) {
	if c.Entry().AsksModel() {
		return b.model(key, c)
	}
	return b.service(c), nil
}

// model returns the settings of a condenser that calls a model.
func (b builder) model(key string, c config.Condenser) (func(condense.Input) condense.LLMSettings, error) {
	general := b.config.UpstreamFor(b.of, config.General)
	llm, known := b.config.LLMFor(c.LLMConfig, b.of, general)
	if !known {
		return nil, fmt.Errorf("%s.llm_config: %q is not one of llms", key, c.LLMConfig)
	}
	caller := b.out.caller(b.through, c.Timeout, llm)
	limited := b.limited(caller, b.keys(llm)...)
	limited.named = spelled(b.config.LLMs[c.LLMConfig].BaseURL)
	common := condense.LLMSettings{
		Summariser: b.metered(observe.Summariser{Summariser: limited}),
		Model:      llm.Model, Health: b.health, MaxEventLength: c.MaxEventLength, Instructions: c.Instructions,
	}
	if c.PromptFile != "" {
		prompt, err := readPrompt(c.PromptFile)
		if err != nil {
			return nil, fmt.Errorf("%s.prompt_file: %w", key, err)
		}
		common.Prompt = prompt
	}
	if c.Focus != catalogue.FocusAuto {
		common.Focus = condense.Focus(c.Focus)
	}
	type payer struct{ url, key string } // several providers may have one address, each with its own key of the operator's, or none
	called := map[payer]callee{}
	for _, up := range b.config.UpstreamsFor(b.of) {
		called[payer{spelled(up.BaseURL), up.APIKey.Reveal()}] = b.callee(c.LLMConfig, up)
	}
	return func(in condense.Input) condense.LLMSettings {
		s := common
		at, known := called[payer{in.Upstream.BaseURL, in.Upstream.APIKey}]
		if !known { // by the client's own key
			at = b.callee(c.LLMConfig, config.Upstream{BaseURL: in.Upstream.BaseURL})
		}
		s.Endpoint = at.endpoint
		if at.samePayer {
			s.Reuse = b.reuse
		}
		s.Settings = b.settings(c, in, &llm)
		s.Window, s.MaxOutput = b.room(llm, in)
		return s
	}, nil
}

// maxPrompt is the maximum length of a prompt of the operator's own, in bytes.
const maxPrompt = 32 << 10

// readPrompt reads the operator's own instructions for summaries.
func readPrompt(file string) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	switch prompt := strings.TrimSpace(string(text)); {
	case err != nil:
		return "", fmt.Errorf("%w: create the file, or remove the key", err)
	case prompt == "":
		return "", fmt.Errorf("%s is empty: write the instructions for summaries into it, or remove the key", file)
	case len(text) > maxPrompt || !utf8.ValidString(prompt):
		return "", fmt.Errorf("%s is longer than %d bytes, or is not text in UTF-8: correct it, or remove the key", file, maxPrompt)
	default:
		return prompt, nil
	}
}

// callee is the model that is called for requests to one upstream.
type callee struct {
	endpoint  condense.Endpoint
	samePayer bool // who pays for the requests pays for summaries too
}

// callee returns the model of that name as it is called for requests to an upstream.
func (b builder) callee(name string, at config.Upstream) callee {
	llm, _ := b.config.LLMFor(name, b.of, at)
	to := endpoint(llm)
	to.BaseURL = spelled(to.BaseURL)
	return callee{to, at.APIKey != "" || llm.APIKey == "" && llm.BaseURL == at.BaseURL}
}

// keys returns the operator's keys that may pay for a model's calls.
func (b builder) keys(llm config.LLM) []config.Secret {
	keys := []config.Secret{llm.APIKey}
	for _, up := range b.config.UpstreamsFor(b.of) {
		keys = append(keys, up.APIKey)
	}
	return keys
}

// spelled returns a URL as it appears in requests. A client's key is only sent to the URL of its requests, so that other URLs have to be
// spelled alike.
func spelled(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return u.String()
}

// service returns the settings of a condenser that calls a service.
func (b builder) service(c config.Condenser) func(condense.Input) condense.LLMSettings {
	called := summariser.Service{Client: client(b.through), URL: c.URL, Key: c.Key(), Timeout: c.Timeout}
	limited := b.limited(called, config.Secret(c.Key()))
	limited.named = c.URL
	common := condense.LLMSettings{
		Summariser: b.metered(observe.Summariser{Summariser: limited, NoModel: true}),
		Endpoint:   condense.Endpoint{BaseURL: c.URL, APIKey: c.Key()}, Health: b.health,
	}
	return func(in condense.Input) condense.LLMSettings {
		s := common
		s.Settings = b.settings(c, in, nil)
		return s
	}
}

func endpoint(llm config.LLM) condense.Endpoint {
	return condense.Endpoint{BaseURL: llm.BaseURL, APIKey: llm.APIKey.Reveal(), Way: condense.Way{API: llm.API}}
}

// metered returns a summariser whose calls are measured, if the proxy has metrics.
func (b builder) metered(s observe.Summariser) condense.Summariser {
	if b.out.metrics == nil {
		return s.Summariser
	}
	s.Tenant, s.Metrics, s.Spans, s.Models = b.tenant, b.out.metrics, b.out.spans, models(b.config)
	return s
}

// settings returns the settings of a rolling condenser for a request. A summariser without a model name is the request's
// own model.
func (b builder) settings(c config.Condenser, in condense.Input, summariser *config.LLM) condense.Settings {
	s := c.Rolling()
	s.Margin = margin(in.Window)
	if c.ByPrice() {
		s.Economics = b.economics(in.Model, summariser)
	}
	return s
}

// floor is the number of tokens up to which a request is never condensed by price: its bill is small, and so would be its memory.
const floor = 16_000

// prices returns the prices of a request's model and a summariser's, or nil if they are two models that cannot be compared, because the price of
// one is not known.
func (b builder) prices(name, summariser string) *condense.Economics {
	if name != summariser && !(b.price(name).Known() && b.price(summariser).Known()) {
		return nil
	}
	return b.economics(name, &config.LLM{Model: summariser})
}

// price returns the price of a model, zero if it is not known.
func (b builder) price(name string) model.Price {
	info, _ := b.config.ModelFor(name)
	return info.Price
}

// economics returns the prices of a request's model and its summariser. Without a known price, the usual ratios take its place. A summariser whose
// price cannot be compared with the model's is assumed to cost as much, unless it runs on the operator's own machines.
func (b builder) economics(name string, summariser *config.LLM) *condense.Economics {
	info, known := b.config.ModelFor(name)
	price := info.Price
	if !price.Known() {
		price = model.RatiosOf(name)
	}
	e := &condense.Economics{
		Read: price.CachedInput, Write: max(price.Input, price.CacheWrite), Answer: price.Output, Floor: floor, Edge: price.Long.Above,
	}
	cache := model.CacheOf(known)
	e.Life, e.Asked = cache.Life, cache.Asked
	if summariser != nil {
		e.In, e.Out = b.callPrice(*summariser, price, info.Price.Known())
	}
	return e
}

// callPrice returns the prices of a summariser's input and output tokens in the unit of another model's price. comparable says that it is money.
func (b builder) callPrice(summariser config.LLM, other model.Price, comparable bool) (in, out float64) {
	own := b.price(summariser.Model)
	switch {
	case own.Known() && comparable:
		return own.Input, own.Output
	case !own.Known() && summariser.Model != "" && summariser.BaseURL != "" && !config.OverInternet(summariser.BaseURL):
		return 0, 0
	}
	return other.Input, other.Output
}

// margin returns how many tokens of a model's window stay free, because counts are not exact: one fiftieth of the window, at
// least 256 tokens, but at most a quarter of the window.
func margin(window int) int { return min(max(window/50, 256), window/4) }

// room returns the window of a summariser's model and the maximum output of a summary, in tokens. If it is the request's own
// model, upstream may have corrected its window. Unless it is configured, the output is the default, bounded by the model's
// maximum output and by a quarter of its window.
func (b builder) room(llm config.LLM, in condense.Input) (window, output int) {
	name := cmp.Or(llm.Model, in.Model)
	info, _ := b.config.ModelFor(name)
	window = info.ContextWindow
	if name == in.Model && in.Window > 0 {
		window = min(window, in.Window)
	}
	return window, cmp.Or(llm.MaxOutput, min(condense.DefaultMaxOutput, info.MaxOutput, window/4))
}
