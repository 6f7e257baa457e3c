package charttest

import (
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// TestSets checks what is special about each value set.
func TestSets(t *testing.T) {
	checks := map[string]func(*testing.T, rendered){
		"default":           embeddedOnVolume,
		"minimal":           nothingOutlivesThePod,
		"embedded-pvc":      claimOfOnesOwn,
		"redis-url":         redisByURL,
		"redis-sentinel":    redisBySentinel,
		"redis-cluster-tls": redisClusterByTLS,
		"tenants":           tenants,
		"tenants-from":      tenantsFrom,
		"production":        production,
		"gateway":           publishedByGateway,
		"keda":              scaledByKEDA,
	}
	eachSet(t, func(t *testing.T, r rendered) {
		_, set, _ := strings.Cut(t.Name(), "/")
		if checks[set] == nil {
			t.Fatal("a new value set: give it its check")
		}
		checks[set](t, r)
	})
}

// kinds counts the objects by kind.
func kinds(r rendered) map[string]int {
	count := map[string]int{}
	for _, o := range r.objects {
		count[o.GetObjectKind().GroupVersionKind().Kind]++
	}
	return count
}

func wantKinds(t *testing.T, r rendered, want string) {
	t.Helper()
	var got []string
	for kind := range kinds(r) {
		got = append(got, kind)
	}
	slices.Sort(got)
	if strings.Join(got, " ") != want {
		t.Errorf("renders %s\n     not %s", strings.Join(got, " "), want)
	}
}

func embeddedOnVolume(t *testing.T, r rendered) {
	wantKinds(t, r, "ConfigMap Deployment PersistentVolumeClaim Secret Service ServiceAccount")
	claim := one[*core.PersistentVolumeClaim](t, r, name)
	if size := claim.Spec.Resources.Requests.Storage().String(); size != "12Gi" || claim.Spec.StorageClassName != nil {
		t.Errorf("claims %s", size)
	}
	if claim.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Error("conversations go with the release")
	}
	c := loadConfig(t, r)
	if c.Store.Type != "embedded" || c.Store.Path != "/var/lib/dewpoint/dewpoint.db" {
		t.Errorf("store: %+v", c.Store)
	}
	if mount := container(t, r).VolumeMounts[1]; mount.MountPath != "/var/lib/dewpoint" || mount.ReadOnly {
		t.Errorf("the volume is mounted as %+v", mount)
	}
	if *pod(t, r).SecurityContext.FSGroup != 65532 {
		t.Error("the volume is not the process's")
	}
	token := one[*core.Secret](t, r, name+"-admin").Data["token"]
	if len(token) != 40 {
		t.Errorf("a token of %d characters was made", len(token))
	}
}

func nothingOutlivesThePod(t *testing.T, r rendered) {
	wantKinds(t, r, "ConfigMap Deployment Secret Service")
	if v := pod(t, r).Volumes[1]; v.Name != "data" || v.EmptyDir == nil {
		t.Errorf("the store is on %+v", v)
	}
	if pod(t, r).ServiceAccountName != "default" {
		t.Errorf("runs as %s", pod(t, r).ServiceAccountName)
	}
	if limits := container(t, r).Resources; len(limits.Limits)+len(limits.Requests) != 0 {
		t.Errorf("resources: %v", limits)
	}
	if token := one[*core.Secret](t, r, name+"-admin").Data["token"]; string(token) != "an-admin-token-for-a-test" {
		t.Errorf("the token is %q", token)
	}
}

func claimOfOnesOwn(t *testing.T, r rendered) {
	wantKinds(t, r, "ConfigMap Deployment Service ServiceAccount")
	if claim := pod(t, r).Volumes[1].PersistentVolumeClaim; claim.ClaimName != "conversations" {
		t.Errorf("uses the claim %s", claim.ClaimName)
	}
	c := loadConfig(t, r)
	if c.Upstream.APIKey.Reveal() != "dummy-secret-of-OPENAI_API_KEY" || c.Store.MaxSize != 2<<30 || c.Condenser.MaxTokens != 100000 {
		t.Errorf("configuration: %+v", c)
	}
	wantSecret(t, r, "OPENAI_API_KEY", "openai", "api-key")
	wantSecret(t, r, "ADMIN_TOKEN", "dewpoint-admin-token", "bearer")
}

// wantSecret checks from which key of which secret a variable comes.
func wantSecret(t *testing.T, r rendered, variable, secret, key string) {
	t.Helper()
	for _, e := range container(t, r).Env {
		if e.Name == variable {
			if ref := e.ValueFrom.SecretKeyRef; ref.Name != secret || ref.Key != key {
				t.Errorf("%s is %s of %s", variable, ref.Key, ref.Name)
			}
			return
		}
	}
	t.Errorf("%s is not set", variable)
}

func redisByURL(t *testing.T, r rendered) {
	wantKinds(t, r, "ConfigMap Deployment NetworkPolicy PodDisruptionBudget Secret Service ServiceAccount")
	wantSecret(t, r, "REDIS_URL", "redis", "url")
	if text := configText(t, r); !strings.Contains(text, "url: ${REDIS_URL}\n") || strings.Contains(text, "addrs") {
		t.Error(text)
	}
	if *deployment(t, r).Spec.Replicas != 2 {
		t.Error("not two pods")
	}
	wantEgress(t, r, "53/UDP 53/TCP", "443/TCP", "6379/TCP")
}

// wantEgress checks the ports that each rule opens.
func wantEgress(t *testing.T, r rendered, rules ...string) {
	t.Helper()
	var got []string
	for _, rule := range one[*networking.NetworkPolicy](t, r, name).Spec.Egress {
		var ports []string
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.String()+"/"+string(*port.Protocol))
		}
		got = append(got, strings.Join(ports, " "))
	}
	if !slices.Equal(got, rules) {
		t.Errorf("lets out to %q, not %q", got, rules)
	}
}

// TestPortsOfURLs: the network policy opens the port of every URL in the configuration. For a URL that is a secret it opens 443, for Redis 6379.
func TestPortsOfURLs(t *testing.T) {
	for values, want := range map[string]string{
		"{}": "443/TCP",
		"config: {upstream: {base_url: 'http://llm'}}":                                                    "80/TCP",
		"config: {upstream: {base_url: 'http://[::1]/v1:9/x'}}":                                           "80/TCP",
		"config: {upstream: {base_url: 'https://llm:8443/v1', timeout: 30m}}":                             "8443/TCP",
		"config: {condenser: {type: custom, url: 'http://c.svc:9000'}}":                                   "443/TCP 9000/TCP",
		"config: {condenser: {type: pipeline, condensers: [{type: custom, url: 'http://c.svc:9000/x'}]}}": "443/TCP 9000/TCP",
		"config: {tenants: {a: {api_keys: [{env: K}], memory: {mcp: {url: 'http://m:9002/mcp'}}}}}":       "443/TCP 9002/TCP",
		"config: {upstream: {base_url: 'http://llm:8000'}, memory: {webhook: {url: '${K}'}}}":             "443/TCP 8000/TCP",
	} {
		base := "{networkPolicy: {enabled: true}, secrets: {K: {name: a, key: b}}, redis: {enabled: true, url: 'rediss://redis:6380/1'}}"
		t.Run(values, func(t *testing.T) {
			wantEgress(t, mustRender(t, over(from(t, base), values, t)), "53/UDP 53/TCP", want, "6380/TCP")
		})
	}
}

func redisBySentinel(t *testing.T, r rendered) {
	c := loadConfig(t, r).Store.Redis
	if c.MasterName != "main" || len(c.Addrs) != 3 || c.DB != 2 || c.Username != "dewpoint" || c.Cluster || c.TLS {
		t.Errorf("redis: %+v", c)
	}
	text := configText(t, r)
	for _, line := range []string{"sentinel_username: sentinel", "sentinel_password: ${REDIS_SENTINEL_PASSWORD}", "password: ${REDIS_PASSWORD}"} {
		if !strings.Contains(text, " "+line+"\n") {
			t.Errorf("no %s in:\n%s", line, text)
		}
	}
	wantSecret(t, r, "REDIS_PASSWORD", "redis", "password")
	wantSecret(t, r, "REDIS_SENTINEL_PASSWORD", name+"-secrets", "REDIS_SENTINEL_PASSWORD")
	if made := one[*core.Secret](t, r, name+"-secrets").Data; string(made["REDIS_SENTINEL_PASSWORD"]) != "sentinel-password-for-a-test" || len(made) != 1 {
		t.Errorf("the chart's secret has %d keys", len(made))
	}
	wantEgress(t, r, "53/UDP 53/TCP", "443/TCP", "26379/TCP 6379/TCP")
}

func redisClusterByTLS(t *testing.T, r rendered) {
	c := loadConfig(t, r).Store.Redis
	if !c.Cluster || !c.TLS || c.TLSCA != "/etc/dewpoint-redis/ca.crt" || len(c.Addrs) != 3 {
		t.Errorf("redis: %+v", c)
	}
	text := configText(t, r)
	for _, line := range []string{
		"tls_cert: /etc/dewpoint-redis/tls.crt", "tls_key: /etc/dewpoint-redis/tls.key", "tls_server_name: redis.example",
	} {
		if !strings.Contains(text, " "+line+"\n") {
			t.Errorf("no %s in:\n%s", line, text)
		}
	}
	volume, mount := pod(t, r).Volumes[1], container(t, r).VolumeMounts[1]
	if volume.Secret.SecretName != "redis-client" || mount.Name != volume.Name || mount.MountPath != "/etc/dewpoint-redis" || !mount.ReadOnly {
		t.Errorf("certificates: %+v, %+v", volume, mount)
	}
	if len(pod(t, r).TopologySpreadConstraints) != 2 {
		t.Errorf("spread: %v", pod(t, r).TopologySpreadConstraints)
	}
}

func tenants(t *testing.T, r rendered) {
	c := loadConfig(t, r)
	a, b := c.Tenants[0], c.Tenants[1]
	if a.Name != "team-a" || a.APIKeys[0].Value.Reveal() != "dummy-secret-of-TEAM_A_KEY" || !a.Notify || a.Observe != nil && *a.Observe {
		t.Errorf("first tenant: %+v", a)
	}
	if a.Upstream.APIKey.Reveal() != "dummy-secret-of-TEAM_A_UPSTREAM_KEY" || c.Upstream.BaseURL != "https://llm.example/v1" {
		t.Errorf("upstreams: %+v, %+v", a.Upstream, c.Upstream)
	}
	if p := a.Condenser; p.Type != "pipeline" || len(p.Condensers) != 3 || p.Condensers[2].MaxSize != 80 || p.Condensers[2].MinimumProgress != 0.2 {
		t.Errorf("first tenant's condenser: %+v", p)
	}
	if b.Condenser.Type != "recent_events" || b.Condenser.MaxEvents != 50 || b.Observe == nil || !*b.Observe {
		t.Errorf("second tenant: %+v", b)
	}
	if *c.Condenser.PerModel["gpt-4.1"].MaxTokens != 300000 || *c.Condenser.PerModel["gpt-4o*"].MaxTokens != 0.5 {
		t.Errorf("per model: %+v", c.Condenser.PerModel)
	}
	if m := c.Models["small"]; m.ContextWindow != 1000000 || m.Price.Input != 0.1 {
		t.Errorf("model: %+v", m)
	}
	if t0 := c.LLMs["cheap"].Temperature; t0 == nil || *t0 != 0 {
		t.Error("a temperature of 0 was lost")
	}
	wantEgress(t, r, "53/UDP 53/TCP", "443/TCP 8000/TCP", "6379/TCP")
}

func tenantsFrom(t *testing.T, r rendered) {
	c := loadConfig(t, r)
	var names []string
	for _, tenant := range c.Tenants {
		names = append(names, tenant.Name)
	}
	if !slices.Equal(names, []string{"team-a", "team-b", "of-tenants-0", "of-tenants-1"}) {
		t.Errorf("tenants: %v", names)
	}
	mounts, volumes := container(t, r).VolumeMounts[1:3], pod(t, r).Volumes[1:3]
	for i, path := range []string{"/etc/dewpoint-tenants/configmap-dewpoint-tenants", "/etc/dewpoint-tenants/secret-dewpoint-tenants-with-keys"} {
		if m := mounts[i]; m.Name != volumes[i].Name || m.MountPath != path || !m.ReadOnly || m.SubPath != "" {
			t.Errorf("tenants are mounted as %+v", m)
		}
	}
	first, other := volumes[0].ConfigMap, volumes[1].Secret
	if first.Name != "dewpoint-tenants" || *first.DefaultMode != 0o440 || other.SecretName != "dewpoint-tenants-with-keys" || *other.DefaultMode != 0o440 {
		t.Errorf("tenants come from %+v", volumes)
	}
	// If both have the same key, that is reported as an error, and neither replaces the other.
	_, err := loadTenants(t, r, func(string) string { return "team-c.yaml" })
	const twice = `tenants_dir["secret-dewpoint-tenants-with-keys/team-c.yaml"].name: is also the name of tenants_dir["configmap-dewpoint-tenants/team-c.yaml"]`
	if err == nil || !strings.Contains(err.Error(), twice) {
		t.Errorf("a tenant of two sources: %v", err)
	}
	second := over(sets(t)["tenants-from"], "config: {tenants: {team-a: {observe: true}, team-b: null, team-c: {api_keys: [{env: TEAM_A_KEY}]}}}", t)
	if text := configText(t, mustRender(t, second)); strings.Contains(text, "team-b") || !strings.Contains(text, "team-c:") || !strings.Contains(text, "max_size: 120") {
		t.Errorf("two files of values make\n%s", text)
	}
}

func production(t *testing.T, r rendered) {
	wantKinds(t, r, "ConfigMap Deployment HorizontalPodAutoscaler Ingress NetworkPolicy PodDisruptionBudget PrometheusRule Service ServiceAccount ServiceMonitor")
	t.Run("scales", func(t *testing.T) { scales(t, r) })
	t.Run("is published", func(t *testing.T) { isPublished(t, r) })
	t.Run("is isolated", func(t *testing.T) { isIsolated(t, r) })
	t.Run("is watched", func(t *testing.T) { isWatched(t, r) })
	t.Run("has its place", func(t *testing.T) { hasItsPlace(t, r) })
}

func scales(t *testing.T, r rendered) {
	if replicas := deployment(t, r).Spec.Replicas; replicas != nil {
		t.Errorf("an upgrade would set %d pods against the autoscaler", *replicas)
	}
	h := one[*autoscaling.HorizontalPodAutoscaler](t, r, name).Spec
	if *h.MinReplicas != 3 || h.MaxReplicas != 20 || len(h.Metrics) != 2 {
		t.Fatalf("autoscaler: %+v", h)
	}
	if cpu := h.Metrics[0].Resource; cpu.Name != "cpu" || *cpu.Target.AverageUtilization != 70 {
		t.Errorf("by %+v", cpu)
	}
	if flight := h.Metrics[1].Pods; flight.Metric.Name != "dewpoint_requests_in_flight" || flight.Target.AverageValue.String() != "80" {
		t.Errorf("by %+v", flight)
	}
	if down := h.Behavior.ScaleDown; *down.StabilizationWindowSeconds != 300 || down.Policies[0].Value != 1 {
		t.Errorf("down by %+v", down)
	}
	p := one[*policy.PodDisruptionBudget](t, r, name).Spec
	if p.MaxUnavailable.IntVal != 1 || p.MinAvailable != nil || *p.UnhealthyPodEvictionPolicy != policy.AlwaysAllow {
		t.Errorf("budget: %+v", p)
	}
}

func isPublished(t *testing.T, r rendered) {
	i := one[*networking.Ingress](t, r, name)
	for annotation, want := range map[string]string{
		"proxy-read-timeout": "7200", "proxy-send-timeout": "3600", "proxy-buffering": "off", "proxy-request-buffering": "off", "proxy-body-size": "0",
	} {
		if got := i.Annotations["nginx.ingress.kubernetes.io/"+annotation]; got != want {
			t.Errorf("%s is %q", annotation, got)
		}
	}
	if i.Annotations["cert-manager.io/cluster-issuer"] != "letsencrypt" || *i.Spec.IngressClassName != "nginx" {
		t.Errorf("ingress: %+v", i)
	}
	if i.Spec.Rules[0].Host != "llm.example.com" || i.Spec.TLS[0].SecretName != "llm-tls" {
		t.Errorf("ingress: %+v", i.Spec)
	}
}

func isIsolated(t *testing.T, r rendered) {
	p := one[*networking.NetworkPolicy](t, r, name).Spec
	if len(p.PolicyTypes) != 2 || len(p.Ingress) != 3 {
		t.Fatalf("policy: %+v", p)
	}
	for i, want := range []string{"http ingress-nginx", "admin monitoring"} {
		from := p.Ingress[i].From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]
		if got := p.Ingress[i].Ports[0].Port.StrVal + " " + from; got != want {
			t.Errorf("lets in %s, not %s", got, want)
		}
	}
	wantEgress(t, r, "53/UDP 53/TCP", "443/TCP", "6379/TCP", "4318/TCP")
	if block := p.Egress[1].To[0].IPBlock; block.CIDR != "0.0.0.0/0" || block.Except[0] != "169.254.0.0/16" {
		t.Errorf("upstream is %+v", block)
	}
	if to := p.Egress[2].To[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]; to != "redis" {
		t.Errorf("redis is in %s", to)
	}
}

func isWatched(t *testing.T, r rendered) {
	m := one[*monitoring.ServiceMonitor](t, r, name)
	auth := m.Spec.Endpoints[0].Authorization
	if auth.Type != "Bearer" || auth.Credentials.Name != "dewpoint-admin-token" || auth.Credentials.Key != "token" {
		t.Errorf("reads metrics with %+v", auth)
	}
	rule := one[*monitoring.PrometheusRule](t, r, name)
	if m.Labels["release"] != "prometheus" || rule.Labels["release"] != "prometheus" || len(rule.Spec.Groups) == 0 {
		t.Errorf("labels: %v, %v", m.Labels, rule.Labels)
	}
	board := one[*core.ConfigMap](t, r, name+"-dashboard")
	if board.Labels["grafana_dashboard"] != "1" || board.Annotations["grafana_folder"] != "LLM" {
		t.Errorf("dashboard: %+v", board.ObjectMeta)
	}
}

func hasItsPlace(t *testing.T, r rendered) {
	p, c := pod(t, r), container(t, r)
	if p.PriorityClassName != "high" || p.NodeSelector["kubernetes.io/arch"] != "amd64" || p.Tolerations[0].Value != "llm" || p.ImagePullSecrets[0].Name != "registry" {
		t.Errorf("pod: %+v", p)
	}
	for i, want := range []string{"kubernetes.io/hostname ScheduleAnyway", "topology.kubernetes.io/zone DoNotSchedule"} {
		s := p.TopologySpreadConstraints[i]
		if got := s.TopologyKey + " " + string(s.WhenUnsatisfiable); got != want || s.MaxSkew != 1 {
			t.Errorf("spread %s, not %s", got, want)
		}
	}
	if !strings.HasPrefix(c.Image, "ghcr.io/dewpoint-proxy/dewpoint@sha256:") {
		t.Errorf("image %s", c.Image)
	}
	if *p.TerminationGracePeriodSeconds != 925 || env(t, r)["OTEL_EXPORTER_OTLP_ENDPOINT"] != "http://collector.tracing:4318" {
		t.Errorf("%d s to end, environment %v", *p.TerminationGracePeriodSeconds, env(t, r))
	}
	if deployment(t, r).Labels["team"] != "platform" || deployment(t, r).Spec.Template.Labels["team"] != "platform" {
		t.Error("common labels are missing")
	}
}

func scaledByKEDA(t *testing.T, r rendered) {
	wantKinds(t, r, "ConfigMap Deployment PodDisruptionBudget PodMonitor ScaledObject Secret Service ServiceAccount")
	if replicas := deployment(t, r).Spec.Replicas; replicas != nil {
		t.Errorf("an upgrade would set %d pods against KEDA", *replicas)
	}
	scaled := one[*unstructured.Unstructured](t, r, name)
	if target, _, _ := unstructured.NestedString(scaled.Object, "spec", "scaleTargetRef", "name"); target != name {
		t.Errorf("scales %s", target)
	}
	m := one[*monitoring.PodMonitor](t, r, name).Spec
	if e := m.PodMetricsEndpoints[0]; *e.Port != "admin" || e.Authorization.Credentials.Name != name+"-admin" || m.Selector.MatchLabels["app.kubernetes.io/instance"] != "try" {
		t.Errorf("monitor: %+v", m)
	}
}

func publishedByGateway(t *testing.T, r rendered) {
	route := one[*gateway.HTTPRoute](t, r, name).Spec
	if p := route.ParentRefs[0]; p.Name != "public" || *p.Namespace != "gateways" || *p.SectionName != "https" {
		t.Errorf("parents: %+v", p)
	}
	rule := route.Rules[0]
	if rule.Timeouts == nil || *rule.Timeouts.Request != "0s" || *rule.Timeouts.BackendRequest != "0s" {
		t.Errorf("a stream is cut after %+v", rule.Timeouts)
	}
	if len(route.Hostnames) != 1 || route.Hostnames[0] != "llm.example.com" || *rule.Matches[0].Path.Value != "/" || *rule.Matches[0].Path.Type != gateway.PathMatchPathPrefix {
		t.Errorf("route: %+v", route)
	}
	if s := one[*core.Service](t, r, name); s.Spec.Ports[0].Port != 8080 || s.Annotations["example.com/owner"] != "platform" {
		t.Errorf("service: %+v", s)
	}
}
