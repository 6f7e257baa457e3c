package agents

import (
	"slices"
	"strings"
)

// credentialHeaders are the headers that carry a key or a token, those that most clients send first.
var credentialHeaders = [...]string{
	"Authorization", "api-key", "x-api-key", "x-goog-api-key",
	"Ocp-Apim-Subscription-Key", "subscription-key", // Azure API Management
	"apikey", "x-apikey", "api-token", "x-api-token", "access-token", "x-access-token", "auth-token", "x-auth-token", "x-auth-key",
	"x-token", "x-functions-key", "x-amz-security-token", "xi-api-key", "private-token",
	"x-litellm-api-key", "x-portkey-api-key", "helicone-auth", "cf-aig-authorization", // gateways
	"x-forwarded-authorization", "x-forwarded-access-token", "x-serverless-authorization", "x-goog-iam-authorization-token",
}

// credentialQuery are the URL parameters that carry a key or a token.
var credentialQuery = [...]string{
	"key", "api-key", "apikey", "x-api-key", "subscription-key", "access-token", "auth-token", "api-token", "token", "x-amz-security-token",
	"x-amz-signature", "x-amz-credential",
}

// CredentialHeaders returns the headers that carry a client's key, in order of precedence. A request's credential is made up of all of them
// and of all parameters that IsCredentialParameter names. Cookies do not belong to it: servers replace them at any time, and clients send
// them back.
func CredentialHeaders() []string { return slices.Clone(credentialHeaders[:]) }

// IsCredentialHeader reports whether a header carries a key or a token of its sender's: one of CredentialHeaders, or a cookie. Many servers do
// not tell underscores and hyphens apart in names of headers, so they are equal here.
func IsCredentialHeader(name string) bool {
	return named(name, credentialHeaders[:]) || strings.EqualFold(name, "Cookie")
}

// IsCredentialParameter reports whether a URL parameter, unescaped, carries a key or a token.
func IsCredentialParameter(name string) bool { return named(name, credentialQuery[:]) }

// subscriptionKeys are what the tokens of subscriptions begin with, and subscriptionHeaders are headers that go with such tokens.
var (
	subscriptionKeys    = [...]string{"sk-ant-oat"}         // Claude
	subscriptionHeaders = [...]string{"ChatGPT-Account-ID"} // ChatGPT, with which Codex logs in
)

// Subscribes reports whether a client's key belongs to a subscription, which is not billed by tokens.
func Subscribes(key string, header func(name string) string) bool {
	return slices.ContainsFunc(subscriptionKeys[:], func(prefix string) bool { return strings.HasPrefix(key, prefix) }) ||
		slices.ContainsFunc(subscriptionHeaders[:], func(name string) bool { return header(name) != "" })
}

func named(name string, all []string) bool {
	name = strings.ReplaceAll(name, "_", "-")
	return slices.ContainsFunc(all, func(known string) bool { return strings.EqualFold(known, name) })
}
