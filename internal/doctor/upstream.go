package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
	"github.com/dewpoint-proxy/dewpoint/internal/setup"
)

// upstreamTimeout bounds a request to an upstream.
const upstreamTimeout = 10 * time.Second

// checkUpstreams asks each upstream for its models, which costs nothing: with the configured key, or that of its provider in the environment. Of
// providers without either only the first is asked.
func (p Patient) checkUpstreams(ctx context.Context, found func(Finding)) {
	type target struct {
		base string
		key  config.Secret
	}
	seen := map[target]bool{}
	for _, t := range p.Config.EveryTenant() {
		for i, up := range p.Config.UpstreamsFor(t) {
			_, inEnvironment := setup.KeyFor(up.BaseURL, p.Getenv)
			expected := i == 0 || up.APIKey != "" || inEnvironment // other providers that clients may mean, and maybe never do
			if at := (target{up.BaseURL, up.APIKey}); expected && !seen[at] {
				seen[at] = true
				found(p.askUpstream(ctx, up))
			}
		}
	}
}

// askUpstream makes the request to one upstream.
func (p Patient) askUpstream(ctx context.Context, up config.Upstream) Finding {
	key, from := up.APIKey.Reveal(), "the configured key"
	if known, ok := setup.KeyFor(up.BaseURL, p.Getenv); ok && key == "" {
		key, from = p.Getenv(known.Variable), "the key in "+known.Variable
	}
	ctx, cancel := context.WithTimeout(ctx, upstreamTimeout)
	defer cancel()
	begun := time.Now()
	status, err := p.listModels(ctx, up.BaseURL, key)
	return judge(reply{
		at: shown(up.BaseURL), status: status, err: err, took: time.Since(begun), key: key != "", from: from, configured: up.APIKey != "",
	})
}

// reply is what an upstream has answered.
type reply struct {
	at         string
	status     int
	err        error
	took       time.Duration
	key        bool // one was sent
	from       string
	configured bool // the key is that of the configuration
}

func judge(r reply) Finding {
	answered := fmt.Sprintf("%s answered in %.1f s", r.at, r.took.Seconds())
	switch {
	case r.err != nil:
		return Finding{Fail, "upstream", fmt.Sprintf("%s cannot be reached: %s", r.at, cause(r.err)),
			"check upstream.base_url, the network, and HTTPS_PROXY if you need a proxy"}
	case r.status == http.StatusUnauthorized && !r.key, r.status == http.StatusForbidden && !r.key:
		return Finding{OK, "upstream", answered + "; each client sends its own key, so none was tried", ""}
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden:
		level, fix := Warn, "correct the variable, if your agents use that key"
		if r.configured {
			level, fix = Fail, "correct upstream.api_key"
		}
		return Finding{level, "upstream", fmt.Sprintf("%s refused %s (%d)", r.at, r.from, r.status), fix}
	case r.status >= 500:
		return Finding{Warn, "upstream", fmt.Sprintf("%s answered with status %d", r.at, r.status), "try again later, or look at the server's log"}
	case r.status == http.StatusOK && r.key:
		return Finding{OK, "upstream", answered + " and accepted " + r.from, ""}
	case r.status == http.StatusOK:
		return Finding{OK, "upstream", answered + " without a key", ""}
	}
	return Finding{Warn, "upstream", fmt.Sprintf("%s has no list of models (%d), so its key could not be tried", r.at, r.status),
		"if requests fail too, check that upstream.base_url ends in the version, such as /v1"}
}

// listModels asks for the list of models and returns the status of the answer.
func (p Patient) listModels(ctx context.Context, base, key string) (int, error) {
	u, err := url.Parse(base)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("models").String(), nil)
	if err != nil {
		return 0, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
		if strings.HasSuffix(u.Hostname(), "anthropic.com") {
			req.Header.Del("Authorization")
			req.Header.Set("X-Api-Key", key)
		}
		if strings.HasSuffix(u.Hostname(), "azure.com") {
			req.Header.Set("Api-Key", key)
		}
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := p.Ask.RoundTrip(req) // which follows no redirect with the key
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	return resp.StatusCode, nil
}

// checkModels calls each model of llms as the condensers that name it call it.
func (p Patient) checkModels(ctx context.Context, found func(Finding)) {
	for _, probed := range app.Probe(ctx, p.Config) {
		f := Finding{OK, "llms", probed.Name + ": " + probed.String(), ""}
		if probed.Err != nil {
			f.Level, f.Fix = Fail, remedy(probed)
		}
		found(f)
	}
}

// remedy says what to do about a model that does not answer.
func remedy(p app.Probed) string {
	call, failed := errors.AsType[*condense.CallError](p.Err)
	key := "llms." + p.Name
	switch {
	case !failed:
		return "name a model that does in " + key + ".model, or use type llm"
	case call.Kind == condense.FailureDenied:
		return "correct " + key + ".api_key"
	case call.Kind == condense.FailureUnreachable, call.Kind == condense.FailureTimeout:
		return "check " + key + ".base_url, and that the server runs"
	case call.Kind == condense.FailureRateLimited:
		return "wait, or raise the limit of that key"
	case call.Kind == condense.FailureServer:
		return "try again later, or look at the server's log"
	}
	return fmt.Sprintf("check %s.model, and %s.api if its server has another protocol", key, key)
}

// shown returns an address without what may be a secret.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
