package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/process"
	"github.com/dewpoint-proxy/dewpoint/lab/servers"
)

// gateway is a gateway that asks Dewpoint.
type gateway struct {
	name    string
	program string
	start   func(ctx context.Context, g gateway, p protocol, work, dewpoint, upstream string) (started, error)
	changes func(any) any // what the gateway does to each history by itself, whether Dewpoint answers or not; nil: nothing
	speaks  []protocol    // in which it is tried

	guardrail string // the parameters of LiteLLM's guardrail
	trims     bool   // it only has results shortened: each message must come in its place, and some must be shorter
}

// Guardrails of LiteLLM.
const (
	genericGuardrail = `guardrail: generic_guardrail_api
      forward_messages_as_sent: true
      unreachable_fallback: fail_open
      fail_on_error: false
      extra_headers: [x-dewpoint-session]`
	headroomGuardrail = `guardrail: headroom
      unreachable_fallback: fail_open`
)

func gateways(litellm, portkey string) []gateway {
	return []gateway{
		{name: "LiteLLM", program: litellm, start: startLiteLLM, changes: byLiteLLM, speaks: []protocol{chatProtocol, messagesProtocol, responsesProtocol}, guardrail: genericGuardrail},
		{name: "LiteLLM's headroom", program: litellm, start: startLiteLLM, changes: byLiteLLM, speaks: []protocol{chatProtocol}, guardrail: headroomGuardrail, trims: true},
		{name: "Portkey", program: portkey, start: startPortkey, speaks: []protocol{chatProtocol}},
	}
}

// own returns a history as the gateway by itself would send it.
func (g gateway) own(history any) any {
	if g.changes == nil {
		return history
	}
	return g.changes(history)
}

// byLiteLLM does what LiteLLM does to a history on the way to a server of OpenAI's protocol: members that are null go, and developers' messages become
// the system's.
func byLiteLLM(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = byLiteLLM(v[i])
		}
	case map[string]any:
		for name, value := range v {
			if v[name] = byLiteLLM(value); value == nil {
				delete(v, name)
			}
		}
		if v["role"] == "developer" {
			v["role"] = "system"
		}
	}
	return v
}

// started is a gateway that serves.
type started struct {
	run    *process.Process
	url    string // its base URL
	header http.Header
}

// compare plays runs through a gateway and through the proxy, and reports whether both forwarded the same.
func compare(ctx context.Context, binary string, g gateway, p protocol, files []string, out io.Writer) (same bool, err error) {
	work, err := os.MkdirTemp("", "dewpoint-plugs-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	direct, behind := startUpstream(), startUpstream()
	defer direct.Close()
	defer behind.Close()
	proxy, proxyURL, err := serve(ctx, binary, filepath.Join(work, "proxy"), direct.URL)
	if err != nil {
		return false, err
	}
	defer proxy.Kill()
	plug, plugURL, err := serve(ctx, binary, filepath.Join(work, "plug"), "http://127.0.0.1:9") // nothing may go there
	if err != nil {
		return false, err
	}
	defer plug.Kill()
	s, err := g.start(ctx, g, p, work, plugURL, behind.URL)
	if err != nil {
		return false, err
	}
	defer s.run.Kill()
	c := comparison{of: g, in: p, direct: direct, behind: behind, proxy: proxyURL, gateway: s, out: out}
	for _, file := range files {
		if err := c.play(ctx, file); err != nil {
			return false, err
		}
	}
	plug.Kill()
	passed, err := c.passes(files)
	fmt.Fprintf(out, "plugs: %s, %s: %d runs, %d steps, %d of them condensed, %d differ; with Dewpoint killed %d of %d requests pass unchanged\n",
		g.name, p.name, len(files), c.steps, c.condensed, c.differ, passed, killedRequests)
	if word := plug.Log.Defect(); word != "" {
		err = errors.Join(err, fmt.Errorf("Dewpoint's log has %s", word)) //nolint:staticcheck // a name
	}
	return c.differ == 0 && c.condensed > 0 && passed == killedRequests, err
}

// comparison counts.
type comparison struct {
	of             gateway
	in             protocol
	direct, behind *upstream
	proxy          string
	gateway        started
	out            io.Writer

	steps, condensed, differ int
}

// play plays a run step by step, through both.
func (c *comparison) play(ctx context.Context, file string) error {
	run, err := readRun(file, c.in)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for i, call := range run.Calls() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		body := c.in.body(&run, call.Messages)
		c.direct.expect(c.in.says(call.Answer))
		c.behind.expect(c.in.says(json.RawMessage(c.in.plain))) // no gateway's plug sees it, and not every recorded message is one that LiteLLM reads
		if _, err := post(c.proxy+c.in.path, body, http.Header{}); err != nil {
			return fmt.Errorf("proxy, %s, step %d: %w", filepath.Base(file), i, err)
		}
		if _, err := post(c.gateway.url+c.in.path, body, c.gateway.header); err != nil {
			return fmt.Errorf("gateway, %s, step %d: %w", filepath.Base(file), i, err)
		}
		want, got := c.of.own(c.in.history(c.direct.seen())), c.of.own(c.in.history(c.behind.seen()))
		sent := c.of.own(c.in.sent(body))
		c.steps++
		if c.of.changed(sent, got) {
			c.condensed++
		}
		if c.of.trims {
			want, got = outline(sent), outline(got)
		}
		if !reflect.DeepEqual(want, got) {
			c.differ++
			if c.differ <= 5 {
				fmt.Fprintf(c.out, "%s, step %d: %s\n", filepath.Base(file), i, difference(want, got))
			}
		}
	}
	return nil
}

// changed reports whether what was forwarded is less than what was sent.
func (g gateway) changed(sent, forwarded any) bool {
	return g.trims && len(canonical(forwarded)) < len(canonical(sent)) || !g.trims && shorter(sent, forwarded)
}

// outline returns messages without the contents of results, all that a trim may change.
func outline(history any) any {
	list, _ := history.([]any)
	out := make([]any, len(list))
	for i, m := range list {
		o, _ := m.(map[string]any)
		out[i] = o
		if o["role"] == "tool" {
			o = maps.Clone(o)
			delete(o, "content")
			out[i] = o
		}
	}
	return out
}

// difference says where two histories differ first.
func difference(want, got any) string {
	a, _ := want.([]any)
	b, _ := got.([]any)
	for i := range min(len(a), len(b)) {
		if !reflect.DeepEqual(a[i], b[i]) {
			x, _ := json.Marshal(a[i])
			y, _ := json.Marshal(b[i])
			at := 0
			for at < min(len(x), len(y)) && x[at] == y[at] {
				at++
			}
			from := max(at-80, 0)
			return fmt.Sprintf("message %d of %d and %d: the proxy forwards ...%.200s, the gateway ...%.200s", i, len(a), len(b), x[from:], y[from:])
		}
	}
	return fmt.Sprintf("the proxy forwards %d messages, the gateway %d", len(a), len(b))
}

// killedRequests is how many requests are sent once Dewpoint is dead.
const killedRequests = 20

// passes returns how many requests reach upstream whole now that Dewpoint is dead.
func (c *comparison) passes(files []string) (passed int, err error) {
	for k := range killedRequests {
		run, err := readRun(files[k%len(files)], c.in)
		if err != nil {
			return passed, err
		}
		calls := run.Calls()
		body := c.in.body(&run, calls[len(calls)-1].Messages)
		c.behind.expect(c.in.says(json.RawMessage(c.in.plain)))
		if _, failed := post(c.gateway.url+c.in.path, body, c.gateway.header); failed != nil {
			fmt.Fprintf(c.out, "with Dewpoint killed: %v\n", failed)
			continue
		}
		if want, got := c.of.own(c.in.sent(body)), c.of.own(c.in.history(c.behind.seen())); reflect.DeepEqual(want, got) {
			passed++
		} else {
			fmt.Fprintf(c.out, "with Dewpoint killed: %s\n", difference(want, got))
		}
	}
	return passed, nil
}

// serve starts Dewpoint with limits that most runs exceed.
func serve(ctx context.Context, binary, work, upstream string) (*process.Process, string, error) {
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, "", err
	}
	config := filepath.Join(work, "dewpoint.yaml")
	err := os.WriteFile(config, fmt.Appendf(nil, `
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: "%s/v1"}
store: {path: %q}
condenser: {type: excerpts, trigger: limits, max_size: 24, keep_first: 2, min_tokens: 0}
`, upstream, filepath.Join(work, "state.db")), 0o600)
	if err != nil {
		return nil, "", err
	}
	run, at, err := servers.Serve(ctx, binary, "--config", config)
	return run, "http://" + at.Listen, err
}

// startLiteLLM starts LiteLLM as the example configures it.
func startLiteLLM(ctx context.Context, g gateway, p protocol, work, dewpoint, upstream string) (started, error) {
	config := filepath.Join(work, "litellm.yaml")
	err := os.WriteFile(config, fmt.Appendf(nil, `
model_list:
  - model_name: %s
    litellm_params: {model: %s/%s, api_base: "%s", api_key: sk-upstream}
guardrails:
  - guardrail_name: dewpoint
    litellm_params:
      %s
      mode: pre_call
      default_on: true
      api_base: %s
litellm_settings: {telemetry: false}
general_settings: {master_key: %s}
`, modelName, p.provider, modelName, upstream+p.base, g.guardrail, dewpoint, clientKey), 0o600)
	if err != nil {
		return started{}, err
	}
	addr, port, err := freePort()
	if err != nil {
		return started{}, err
	}
	environment := []string{"LITELLM_LOCAL_MODEL_COST_MAP=True", "NO_PROXY=127.0.0.1"}
	run, err := startIn(work, environment, g.program, "--config", config, "--host", "127.0.0.1", "--port", port)
	if err != nil {
		return started{}, err
	}
	return started{run: run, url: "http://" + addr, header: http.Header{}}, servers.Ready(ctx, run, starting, answers("http://"+addr+"/health/liveliness"))
}

// startPortkey starts Portkey's gateway. Each request brings the configuration that names the webhook.
func startPortkey(ctx context.Context, g gateway, _ protocol, work, dewpoint, upstream string) (started, error) {
	addr, port, err := freePort()
	if err != nil {
		return started{}, err
	}
	run, err := startIn(work, []string{"TRUSTED_CUSTOM_HOSTS=127.0.0.1"}, "node", g.program, "--headless", "--port="+port)
	if err != nil {
		return started{}, err
	}
	config := fmt.Sprintf(`{"provider":"openai","api_key":"sk-upstream","custom_host":"%s/v1","before_request_hooks":[{"type":"mutator","id":"dewpoint",`+
		`"checks":[{"id":"default.webhook","parameters":{"webhookURL":"%s/plugs/portkey?wait=60s","timeout":90000}}]}]}`, upstream, dewpoint)
	header := http.Header{"X-Portkey-Config": {config}}
	return started{run: run, url: "http://" + addr, header: header}, servers.Ready(ctx, run, starting, answers("http://"+addr+"/"))
}

func freePort() (addr, port string, err error) {
	if addr, err = process.FreeAddr(); err == nil {
		_, port, err = net.SplitHostPort(addr)
	}
	return addr, port, err
}

// starting bounds how long a gateway may take to start. LiteLLM takes a minute on a busy machine.
const starting = 5 * time.Minute

// answers asks a server whether it is ready.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode >= http.StatusInternalServerError {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	}
}

// startIn starts a program in a folder.
func startIn(work string, environment []string, program string, args ...string) (*process.Process, error) {
	command := exec.Command(program, args...) //nolint:noctx // it ends with this program
	command.Dir, command.Env = work, append(process.Environment(), environment...)
	return process.StartCommand(command)
}
