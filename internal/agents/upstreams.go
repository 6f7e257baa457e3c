package agents

import (
	"net/url"
	"slices"
	"strings"
)

// azureHosts are the ends of the names of Azure's model servers.
var azureHosts = [...]string{".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"}

// deployments is what stands before a deployment's name in Azure's paths.
const deployments = "/deployments/"

// Azure reports whether a server is one of Azure's, or made like it: it takes a key of its own in the header api-key.
func Azure(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	for _, end := range azureHosts {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return strings.Contains(u.Path, "/openai"+deployments)
}

// Deployment tells a path of Azure's apart: what stands before the API's own path, with the name of a deployment at its end, and that
// name. It is empty for any other path.
func Deployment(path string) (before, name string) {
	rest := strings.TrimPrefix(path, "/openai")
	after, ok := strings.CutPrefix(rest, deployments)
	name, _, more := strings.Cut(after, "/")
	if !ok || !more || name == "" {
		return "", ""
	}
	return path[:len(path)-len(after)+len(name)], name
}

// Deployed is the path of another deployment next to one.
func Deployed(before, name string) string {
	i := strings.LastIndex(before, deployments)
	if i < 0 {
		return before
	}
	return before[:i+len(deployments)] + url.PathEscape(name)
}

// CachesByChoice reports whether a model's provider goes by tool_choice for its prompt cache, too, as Anthropic does in any protocol.
// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
func CachesByChoice(model string) bool { return strings.Contains(strings.ToLower(model), "claude") }

// RefusesMaxTokens reports whether a model of OpenAI's takes max_completion_tokens alone.
func RefusesMaxTokens(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, series := range [...]string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(name, series) {
			return true
		}
	}
	return false
}

// sharedHeaders say how a key is to be read, to whom a request is billed, and to a gateway where it goes: our own calls to the same upstream have them, too.
// A name that ends in a hyphen is a prefix.
var sharedHeaders = [...]string{
	"openai-organization", "openai-project", // OpenAI
	"http-referer", "x-title", // OpenRouter
	"x-goog-user-project",                 // Google
	"anthropic-version", "anthropic-beta", // Anthropic: its access tokens are taken only with the beta that they are of
	"helicone-", "cf-aig-", "x-portkey-", "x-bf-", "x-litellm-",
}

// routedBy are headers, besides those that name a session, by which providers and gateways send what has one prefix to the server whose
// cache has it. Those that name a session serve for it as well: x-grok-conv-id at xAI, x-session-affinity at Fireworks, x-session-id and
// those of agents at gateways.
var routedBy = [...]string{
	"x-multi-turn-session-id", // Fireworks
	"x-smg-routing-key",       // SGLang's gateway
}

// Routes reports whether a header of a request may decide which server's cache it comes to.
func Routes(header string) bool {
	same := func(name string) bool { return strings.EqualFold(name, header) }
	return slices.ContainsFunc(routedBy[:], same) || slices.ContainsFunc(sessionHeaders[:], same)
}

// Shared reports whether our own calls to a request's upstream have a header of the request.
func Shared(header string) bool {
	header = strings.ToLower(header)
	for _, name := range sharedHeaders {
		if header == name || strings.HasSuffix(name, "-") && strings.HasPrefix(header, name) {
			return true
		}
	}
	return false
}
