package proxy_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// TestDeploymentsKeepTheirNames: the name of a deployment goes upstream verbatim. If servers could read it differently, the request passes
// unread, and is counted.
func TestDeploymentsKeepTheirNames(t *testing.T) {
	var model atomic.Value
	r, got := mirrored(t, setup{models: func(name string) proxy.ModelInfo { model.Store(name); return proxy.ModelInfo{} }})
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
		"/openai%2Fdeployments/deployments/B/chat/completions":  {"/openai%2Fdeployments/deployments/B/chat/completions", "not one"},
		"/v1/openai/deployments/A/chat/completions/B;c/d%20/E/": {"/openai/deployments/A/chat/completions/B;c/d%20/E/", "not one"},
	} {
		model.Store("")
		w := r.dial()
		w.t = t
		w.send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
			strconv.Itoa(len(body)) + "\r\n\r\n" + body)
		resp, answer := w.answer(http.MethodPost)
		w.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s: %s", path, resp.Status, answer)
			continue
		}
		if up := <-got; up.target != "/base/v9"+want.target || up.body != body {
			t.Errorf("%s went to %s", path, up.target)
		}
		unread := ""
		switch want.model {
		case "":
			unread = "path"
		case "not one":
			want.model = ""
		}
		if resp.Header.Get("X-Dewpoint-Unread") != unread || model.Load() != want.model {
			t.Errorf("%s: model %q, %v", path, model.Load(), resp.Header)
		}
	}
}
