package agents

import (
	"net/url"
	"testing"
)

func TestAzure(t *testing.T) {
	for base, want := range map[string]bool{
		"https://ours.openai.azure.com": true, "https://ours.OPENAI.azure.com/openai/v1": true, "https://x.services.ai.azure.com/models": true,
		"https://gateway.example/azure/openai/deployments/gpt": true,
		"https://api.openai.com/v1":                            false, "https://openai.azure.com.example/v1": false, "http://127.0.0.1:8000/v1": false,
	} {
		u, err := url.Parse(base)
		if err != nil || Azure(u) != want {
			t.Errorf("%s: %v, %v", base, !want, err)
		}
	}
}

func TestDeployment(t *testing.T) {
	for path, want := range map[string][2]string{
		"/openai/deployments/gpt-4o/chat/completions": {"/openai/deployments/gpt-4o", "gpt-4o"},
		"/deployments/ours/chat/completions":          {"/deployments/ours", "ours"},
		"/openai/deployments//chat/completions":       {}, "/openai/deployments/x": {}, "/chat/completions": {}, "": {},
	} {
		if before, name := Deployment(path); before != want[0] || name != want[1] {
			t.Errorf("%s: %q, %q", path, before, name)
		}
	}
	if got := Deployed("/openai/deployments/big", "small/1"); got != "/openai/deployments/small%2F1" {
		t.Error(got)
	}
}

func TestShared(t *testing.T) {
	for name, want := range map[string]bool{
		"OpenAI-Organization": true, "openai-project": true, "Helicone-Auth": true, "cf-aig-metadata": true, "X-Portkey-Config": true, "HTTP-Referer": true,
		"Authorization": false, "X-Title-Of": false, "helicone": false, "Cookie": false, "x-stainless-lang": false,
	} {
		if Shared(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestWithoutVersion(t *testing.T) {
	for path, want := range map[string]string{
		"/v1": "", "/v1beta/openai": "", "/team/v1": "/team", "/api/v1/openai": "/api", "/openai": "/openai", "/vendor": "/vendor", "": "", "/v1/proxy": "/v1/proxy",
	} {
		if got := WithoutVersion(path); got != want {
			t.Errorf("%q became %q, want %q", path, got, want)
		}
	}
}
