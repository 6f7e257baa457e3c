package agents

import (
	"net/url"
	"slices"
	"strings"
)

// azureHosts are the domains of Azure's model servers.
var azureHosts = [...]string{".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"}

// deployments precedes the name of a deployment in Azure's paths.
const deployments = "/deployments/"

// Azure reports whether a server belongs to Azure or has Azure's paths. Such a server takes keys in the api-key header.
func Azure(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	ends := func(domain string) bool { return strings.HasSuffix(host, domain) }
	return slices.ContainsFunc(azureHosts[:], ends) || strings.Contains(u.Path, "/openai"+deployments)
}

// Deployment splits a path of Azure's. It returns the part before the API's own path, which ends with the name of a deployment, and
// that name. Both are empty for any other path.
func Deployment(path string) (before, name string) {
	rest := strings.TrimPrefix(path, "/openai")
	after, ok := strings.CutPrefix(rest, deployments)
	name, _, more := strings.Cut(after, "/")
	if !ok || !more || name == "" {
		return "", ""
	}
	return path[:len(path)-len(after)+len(name)], name
}

// IsDeployment reports whether a path ends with the name of a deployment.
func IsDeployment(path string) bool { return strings.Contains(path, deployments) }

// Deployed replaces the name of the deployment at the end of a path.
func Deployed(before, name string) string {
	i := strings.LastIndex(before, deployments)
	if i < 0 {
		return before
	}
	return before[:i+len(deployments)] + url.PathEscape(name)
}

// CachesByChoice reports whether tool_choice is part of the key of a model's prompt cache, as at Anthropic in any protocol.
// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
func CachesByChoice(model string) bool { return strings.Contains(strings.ToLower(model), "claude") }

// RefusesMaxTokens reports whether a model of OpenAI's accepts only max_completion_tokens, not max_tokens.
func RefusesMaxTokens(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	newer := []string{"o1", "o3", "o4", "gpt-5", "gpt-6"}
	return slices.ContainsFunc(newer, func(series string) bool { return strings.HasPrefix(name, series) })
}

// sharedHeaders are headers that say how a key is interpreted, who is billed, and where a gateway sends a request. They are copied to the
// proxy's own calls to the same upstream. A name that ends in a hyphen is a prefix.
var sharedHeaders = [...]string{
	"openai-organization", "openai-project", "chatgpt-account-id", // OpenAI
	"http-referer", "x-title", // OpenRouter
	"x-goog-user-project",                 // Google
	"anthropic-version", "anthropic-beta", // Anthropic: access tokens are accepted only with their beta
	"helicone-", "cf-aig-", "x-portkey-", "x-bf-", "x-litellm-",
}

// routedBy are headers by which providers and gateways route requests with the same prefix to the server that has cached it. Headers that name
// a session are used for this too: x-grok-conv-id by xAI, x-session-affinity by Fireworks, and x-session-id and agents' headers by gateways.
var routedBy = [...]string{
	"x-multi-turn-session-id", // Fireworks
	"x-smg-routing-key",       // SGLang's gateway
}

// Routes reports whether a request's header may determine the server, and so the cache, that it is routed to.
func Routes(header string) bool {
	same := func(name string) bool { return strings.EqualFold(name, header) }
	return slices.ContainsFunc(routedBy[:], same) || slices.ContainsFunc(sessionHeaders[:], same)
}

// Shared reports whether a header of a request is copied to our own calls to the same upstream.
func Shared(header string) bool {
	header = strings.ToLower(header)
	return slices.ContainsFunc(sharedHeaders[:], func(name string) bool {
		return header == name || strings.HasSuffix(name, "-") && strings.HasPrefix(header, name)
	})
}

// WithoutVersion removes the version at the end of a base URL's path, such as /v1 or /v1beta/openai.
func WithoutVersion(path string) string {
	kept, last := splitLast(strings.TrimSuffix(path, "/openai"))
	if len(last) < 2 || last[0] != 'v' || last[1] < '0' || last[1] > '9' {
		return path
	}
	return kept
}

// splitLast splits a path before its last segment.
func splitLast(path string) (before, last string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// Gemini reports whether a path below the base URL is one of Gemini's own API, on Vertex AI too, and so begins with its version.
func Gemini(path string) bool {
	return slices.ContainsFunc([]string{"/v1beta/", "/v1alpha/", "/v1beta1/", "/v1internal:"}, func(version string) bool {
		return strings.HasPrefix(path, version)
	})
}
