package proxy_test

import (
	"strings"
	"testing"
)

// TestDeploymentsKeepTheirNames: the name of a deployment goes upstream verbatim. If servers could read it differently, the request passes
// unread, and is counted.
func TestDeploymentsKeepTheirNames(t *testing.T) {
	paths := newModelPaths(t, nil)
	body := strings.Replace(hello, `"model":"gpt-4o",`, "", 1)
	for path, want := range map[string]struct{ target, model string }{
		"/v1/openai/deployments/MyDep/chat/completions":         {"/openai/deployments/MyDep/chat/completions", "MyDep"},
		"/openai/deployments/MyDep/Chat//completions":           {"/openai/deployments/MyDep/chat/completions", "MyDep"},
		"//OpenAI/%64eployments//My%20Dep/chat/completions":     {"/openai/deployments/My%20Dep/chat/completions", "My Dep"},
		"/deployments/deployments/chat/completions":             {"/deployments/deployments/chat/completions", "deployments"},
		"/v1/openai/deployments/100%25/chat/completions":        {"/openai/deployments/100%25/chat/completions", "100%"},
		"/v1/openai/deployments/My%2520Dep/chat/completions":    {"/openai/deployments/My%2520Dep/chat/completions", ""},
		"/v1/openai/deployments/A;b/chat/completions":           {"/openai/deployments/A;b/chat/completions", ""},
		"/v1/openai/deployments/A%20/chat/completions":          {"/openai/deployments/A%20/chat/completions", ""},
		"/openai%2Fdeployments%2FMyDep%2Fchat%2Fcompletions":    {"/openai%2Fdeployments%2FMyDep%2Fchat%2Fcompletions", ""},
		"/v1/openai/deployments/MyDep%2Fchat/completions":       {"/openai/deployments/MyDep%2Fchat/completions", ""},
		"/openai%2Fdeployments/deployments/B/chat/completions":  {"/openai%2Fdeployments/deployments/B/chat/completions", notOne},
		"/v1/openai/deployments/A/chat/completions/B;c/d%20/E/": {"/openai/deployments/A/chat/completions/B;c/d%20/E/", notOne},
	} {
		paths.check(t, path, body, "/base/v9"+want.target, want.model)
	}
}
