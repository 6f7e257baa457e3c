package rehearsal

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// site is what a cluster has apart from the chart: the image, a Redis Cluster, an upstream, a collector of traces, secrets.
type site struct {
	binary   string
	redis    *sessiontest.Cluster
	upstream *fakeupstream.Server
	desk     *desk
	spans    atomic.Int64 // batches that the collector took
	traces   string       // the collector's host:port
}

const (
	redisPassword = "the-password-of-redis"
	clientKey     = "the-key-of-team-a"
)

// secrets gives the keys of the Secrets that the production set only refers to, which an operator makes.
func secrets() map[string]string {
	return map[string]string{
		"dewpoint-admin-token/token": "the-token-of-the-admin-port",
		"openai/api-key":             "sk-of-the-upstream",
		"team-a/dewpoint-key":        clientKey,
		"redis/password":             redisPassword,
		"store-keys/2025":            "sVc0wQz6kGm4o2nSx1q0rXg4f2kZb9yJt7uP3aLdE5s=",
		"store-keys/2026":            "wJ3nP8bT5rY1mK6hD0cV7xZ4qS9gL2fA8uE5tR3iO1w=",
	}
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{binary: build(t), redis: sessiontest.StartCluster(t), desk: newDesk()}
	for _, node := range s.redis.Nodes {
		node.Do("CONFIG", "SET", "masterauth", redisPassword)
		node.Do("CONFIG", "SET", "requirepass", redisPassword)
	}
	collector := httptest.NewServer(http.HandlerFunc(s.collect))
	t.Cleanup(collector.Close)
	s.traces = strings.TrimPrefix(collector.URL, "http://")
	s.upstream = fakeupstream.New(fakeupstream.Options{
		Strict: true, Keep: 1, APIKeys: []string{secrets()["openai/api-key"]}, Models: []string{agentModel, "gpt-4o-mini"},
		SummariserModels: []string{"gpt-4o-mini"}, Reply: s.desk.reply,
	})
	if err := s.upstream.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.desk.close)
	t.Cleanup(s.upstream.Close) // first: it releases what is held
	return s
}

// build builds the binary as the Dockerfile does.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "dewpoint")
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", binary, "./cmd/proxy")
	command.Dir, command.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("the binary does not build: %v\n%s", err, out)
	}
	return binary
}

// collect takes spans as a collector does by OTLP over HTTP.
func (s *site) collect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.NotFound(w, r)
		return
	}
	s.spans.Add(1)
	w.WriteHeader(http.StatusOK)
}

// difference is something of the rendered pod that cannot be the same here.
type difference struct{ rendered, here, why string }

// differences is everything in which the processes differ from the rendered containers, but for what a machine without
// containers cannot do: the user, the read-only root, the limits.
func (s *site) differences(mounts string) []difference {
	nodes := s.redis.Addrs()
	return []difference{
		{"0.0.0.0:8080", "0.0.0.0:0", "pods have an address each, processes a port"},
		{"0.0.0.0:9090", "0.0.0.0:0", "the same"},
		{"/etc/dewpoint/", filepath.Join(mounts, "etc", "dewpoint") + "/", "where the ConfigMap is mounted"},
		{"redis-0.redis:6379", nodes[0], "the Cluster's nodes"},
		{"redis-1.redis:6379", nodes[1], "the same"},
		{"redis-2.redis:6379", nodes[2], "the same"},
		{"collector.tracing:4318", s.traces, "the collector of traces"},
	}
}

// added is the one variable that the rendered container does not have: the set goes to the real upstream.
func (s *site) added() string { return "DEWPOINT_UPSTREAM_BASE_URL=" + s.upstream.URL() + "/v1" }

// localised puts what is here in the place of what was rendered, and notes what it found.
func localised(text string, differences []difference, found map[string]bool) string {
	for _, d := range differences {
		if strings.Contains(text, d.rendered) {
			found[d.rendered] = true
			text = strings.ReplaceAll(text, d.rendered, d.here)
		}
	}
	return text
}

// image is what the Dockerfile makes of an image's configuration.
type image struct {
	entrypoint string
	env        []string
	user       string
}

var (
	envInstruction = regexp.MustCompile(`(?m)^ENV ((?:.*\\\n)*.*)$`)
	entrypoint     = regexp.MustCompile(`(?m)^ENTRYPOINT \["([^"]+)"\]$`)
	user           = regexp.MustCompile(`(?m)^USER (\S+)$`)
)

func readImage(t *testing.T) image {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var i image
	for _, found := range envInstruction.FindAllStringSubmatch(string(text), -1) {
		for _, pair := range strings.Fields(strings.ReplaceAll(found[1], "\\\n", " ")) {
			i.env = append(i.env, strings.ReplaceAll(pair, `"`, ""))
		}
	}
	command, runs := entrypoint.FindStringSubmatch(string(text)), user.FindStringSubmatch(string(text))
	if command == nil || runs == nil || len(i.env) == 0 {
		t.Fatalf("the Dockerfile has another form: %v, %v, %v", command, runs, i.env)
	}
	i.entrypoint, i.user = command[1], runs[1]
	return i
}

// admin asks a replica's admin port with the token, as Prometheus does.
func (s *site) admin(addr, path string) (*http.Response, error) {
	target := url.URL{Scheme: "http", Host: addr, Path: path}
	req, err := http.NewRequest(http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask the admin port: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+secrets()["dewpoint-admin-token/token"])
	return http.DefaultClient.Do(req)
}
