package charttest

import (
	"os"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

// TestExtensions: settings that platform teams add to a release, without a fork of the chart, are rendered as they wrote them.
func TestExtensions(t *testing.T) {
	text, err := os.ReadFile("testdata/extended.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := mustRender(t, from(t, string(text)))
	t.Run("pod", func(t *testing.T) { podIsExtended(t, r) })
	t.Run("network", func(t *testing.T) { networkIsExtended(t, r) })
	t.Run("monitor", func(t *testing.T) { monitorIsElsewhere(t, r) })
	if extra := one[*core.ConfigMap](t, r, name+"-extra"); extra.Data["of"] != "dewpoint" {
		t.Errorf("the extra object is %v", extra.Data)
	}
}

func podIsExtended(t *testing.T, r rendered) {
	d, p, c := deployment(t, r), pod(t, r), container(t, r)
	if d.Annotations["argocd.argoproj.io/sync-wave"] != "2" {
		t.Errorf("annotations of the Deployment: %v", d.Annotations)
	}
	if u := d.Spec.Strategy.RollingUpdate; u.MaxUnavailable.IntVal != 1 || u.MaxSurge.IntVal != 0 {
		t.Errorf("updates by %v", u)
	}
	if !strings.HasPrefix(c.Image, "registry.example.com/mirror/dewpoint-proxy/dewpoint:") {
		t.Errorf("image %s", c.Image)
	}
	if c.Lifecycle == nil || c.Lifecycle.PreStop.Sleep.Seconds != 5 {
		t.Errorf("lifecycle %v", c.Lifecycle)
	}
	if len(p.InitContainers) != 1 || p.InitContainers[0].Name != "wait" || len(p.Containers) != 2 || p.Containers[1].Name != "tls" {
		t.Errorf("init containers %v, containers %v", p.InitContainers, p.Containers)
	}
	if p.HostAliases[0].IP != "10.0.0.9" || p.DNSPolicy != core.DNSClusterFirst || *p.DNSConfig.Options[0].Value != "2" {
		t.Errorf("names: %v, %s, %v", p.HostAliases, p.DNSPolicy, p.DNSConfig)
	}
}

func networkIsExtended(t *testing.T, r rendered) {
	s := one[*core.Service](t, r, name)
	if s.Spec.ExternalTrafficPolicy != "Local" || *s.Spec.TrafficDistribution != "PreferClose" || *s.Spec.IPFamilyPolicy != "PreferDualStack" || len(s.Spec.IPFamilies) != 2 || s.Labels["team"] != "platform" {
		t.Errorf("service: %v, %+v", s.Labels, s.Spec)
	}
	rule := one[*networking.NetworkPolicy](t, r, name).Spec.Egress[1]
	if rule.To[0].PodSelector.MatchLabels["app"] != "vllm" || rule.Ports[0].Port.IntVal != 8000 {
		t.Errorf("upstream: %+v", rule)
	}
}

func monitorIsElsewhere(t *testing.T, r rendered) {
	m := one[*monitoring.ServiceMonitor](t, r, name)
	endpoint := m.Spec.Endpoints[0]
	if m.Namespace != "monitoring" || m.Spec.NamespaceSelector.MatchNames[0] != namespace {
		t.Errorf("in %s, of %v", m.Namespace, m.Spec.NamespaceSelector)
	}
	if endpoint.Scheme.String() != "https" || *endpoint.TLSConfig.ServerName != "dewpoint.agents.svc" || endpoint.TLSConfig.CA.ConfigMap.Name != "mesh-ca" {
		t.Errorf("by %+v", endpoint)
	}
}

func TestImageNames(t *testing.T) {
	for values, want := range map[string]string{
		"{}":                                  "ghcr.io/dewpoint-proxy/dewpoint:0.1.0",
		"image: {registry: quay.io/team}":     "quay.io/team/dewpoint-proxy/dewpoint:0.1.0",
		"image: {registry: '', tag: '2'}":     "dewpoint-proxy/dewpoint:2",
		"global: {imageRegistry: local:5000}": "local:5000/dewpoint-proxy/dewpoint:0.1.0",
		"global: {imageRegistry: a}\nimage: {registry: b, repository: c}": "a/c:0.1.0",
	} {
		if got := container(t, mustRender(t, from(t, values))).Image; got != want {
			t.Errorf("%s: %s, want %s", values, got, want)
		}
	}
}

// TestHelmTest: 'helm test' checks that the release is ready, from a pod that no Service selects.
func TestHelmTest(t *testing.T) {
	eachSetRelease(t, func(t *testing.T, hooks []string, r rendered) {
		if len(hooks) != 1 {
			t.Fatalf("%d hooks", len(hooks))
		}
		p := decode(t, hooks[0], "").objects[0].(*core.Pod)
		c := p.Spec.Containers[0]
		if p.Annotations["helm.sh/hook"] != "test" || c.Image != container(t, r).Image || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%v, %+v", p.Annotations, c)
		}
		if got := strings.Join(c.Args, " "); got != "health --ready --admin "+name+"-admin:9090" {
			t.Errorf("runs %s", got)
		}
		one[*core.Service](t, r, name+"-admin")
		for _, s := range all[*core.Service](r) {
			if p.Labels["app.kubernetes.io/name"] == s.Spec.Selector["app.kubernetes.io/name"] {
				t.Errorf("service %s sends requests to it", s.Name)
			}
		}
		for _, n := range all[*networking.NetworkPolicy](r) {
			last := n.Spec.Ingress[len(n.Spec.Ingress)-1]
			if want := last.From[0].PodSelector.MatchLabels["app.kubernetes.io/component"]; last.Ports[0].Port.StrVal != "admin" || p.Labels["app.kubernetes.io/component"] != want {
				t.Errorf("the network policy does not let it in: %+v", last)
			}
		}
	})
}

func eachSetRelease(t *testing.T, check func(*testing.T, []string, rendered)) {
	for set, values := range sets(t) {
		t.Run(set, func(t *testing.T) {
			rel, err := render(t, values)
			if err != nil {
				t.Fatal(err)
			}
			var hooks []string
			for _, h := range rel.Hooks {
				hooks = append(hooks, h.Manifest)
			}
			check(t, hooks, decode(t, rel.Manifest, rel.Info.Notes))
		})
	}
}
