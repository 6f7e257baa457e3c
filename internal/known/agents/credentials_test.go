package agents

import "testing"

// TestCredentials checks which headers and parameters count as a client's key, and that others do not.
func TestCredentials(t *testing.T) {
	for name, want := range map[string]bool{
		"Authorization": true, "x_api_key": true, "API-KEY": true, "Ocp-Apim-Subscription-Key": true, "Cookie": true, "X-Access-Token": true,
		"Idempotency-Key": false, "Openai-Organization": false, "X-Session-Id": false, "X-Smg-Routing-Key": false, "Anthropic-Beta": false, "": false,
	} {
		if IsCredentialHeader(name) != want {
			t.Errorf("header %q: %t", name, !want)
		}
	}
	for name, want := range map[string]bool{
		"key": true, "api_key": true, "access_token": true, "Subscription-Key": true, "token": true,
		"keys": false, "max_tokens": false, "api-version": false, "alt": false, "after": false, "": false,
	} {
		if IsCredentialParameter(name) != want {
			t.Errorf("parameter %q: %t", name, !want)
		}
	}
	for _, name := range CredentialHeaders() {
		if !IsCredentialHeader(name) || Routes(name) {
			t.Errorf("%s is a credential", name)
		}
		if name == "Cookie" {
			t.Error("a cookie tells clients apart: servers replace it at any time")
		}
	}
}
