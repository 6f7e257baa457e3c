package charttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

func TestEveryObjectHasItsNameAndLabels(t *testing.T) {
	eachSet(t, func(t *testing.T, r rendered) {
		seen := map[string]bool{}
		for _, o := range r.objects {
			id := fmt.Sprintf("%T %s", o, o.GetName())
			if seen[id] {
				t.Errorf("%s is there twice", id)
			}
			seen[id] = true
			if wrong := validation.NameIsDNS1035Label(o.GetName(), false); len(wrong) > 0 || !strings.HasPrefix(o.GetName(), name) {
				t.Errorf("%s: %v", id, wrong)
			}
			if o.GetNamespace() != namespace {
				t.Errorf("%s is in namespace %q", id, o.GetNamespace())
			}
			if wrong := metavalidation.ValidateLabels(o.GetLabels(), field.NewPath(id)); len(wrong) > 0 {
				t.Error(wrong)
			}
			if o.GetLabels()["app.kubernetes.io/instance"] != "try" || o.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" {
				t.Errorf("%s has labels %v", id, o.GetLabels())
			}
		}
	})
}

// TestReferencesMeet: every selector matches the pods, and nothing refers to a port, a service, a secret or a volume that does not exist.
func TestReferencesMeet(t *testing.T) {
	eachSet(t, func(t *testing.T, r rendered) {
		selectorsMeet(t, r)
		servicesMeet(t, r)
		backendsMeet(t, r)
		secretsMeet(t, r)
		volumesMeet(t, r)
		monitorsMeet(t, r)
	})
}

func selectorsMeet(t *testing.T, r rendered) {
	d := deployment(t, r)
	pods := d.Spec.Template.Labels
	selectors := map[string]map[string]string{"Deployment": d.Spec.Selector.MatchLabels}
	for _, s := range all[*core.Service](r) {
		selectors["Service "+s.Name] = s.Spec.Selector
	}
	for _, p := range all[*policy.PodDisruptionBudget](r) {
		selectors["PodDisruptionBudget"] = p.Spec.Selector.MatchLabels
	}
	for _, p := range all[*networking.NetworkPolicy](r) {
		selectors["NetworkPolicy"] = p.Spec.PodSelector.MatchLabels
	}
	for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
		selectors["spread over "+c.TopologyKey] = c.LabelSelector.MatchLabels
	}
	for who, selector := range selectors {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(pods)) {
			t.Errorf("%s selects %v, which pods with %v are not", who, selector, pods)
		}
	}
	for _, h := range all[*autoscaling.HorizontalPodAutoscaler](r) {
		if target := h.Spec.ScaleTargetRef; target.Kind != "Deployment" || target.Name != d.Name || target.APIVersion != "apps/v1" {
			t.Errorf("the autoscaler scales %v", target)
		}
	}
}

// portsOf returns the names of the container's ports.
func portsOf(t *testing.T, r rendered) []string {
	var names []string
	for _, port := range container(t, r).Ports {
		names = append(names, port.Name)
	}
	return names
}

func servicesMeet(t *testing.T, r rendered) {
	ports := portsOf(t, r)
	for _, s := range all[*core.Service](r) {
		for _, port := range s.Spec.Ports {
			if !slices.Contains(ports, port.TargetPort.StrVal) {
				t.Errorf("service %s sends to port %q, of %v", s.Name, port.TargetPort.StrVal, ports)
			}
		}
	}
	for _, p := range all[*networking.NetworkPolicy](r) {
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				if !slices.Contains(ports, port.Port.StrVal) {
					t.Errorf("the network policy opens port %q, of %v", port.Port.StrVal, ports)
				}
			}
		}
	}
	c := container(t, r)
	for path, probe := range map[string]*core.Probe{"/startupz": c.StartupProbe, "/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "admin" {
			t.Errorf("the probe of %s is %v", path, probe.HTTPGet)
		}
	}
}

// backendsMeet checks that Ingresses and routes publish the data port, and never the admin port.
func backendsMeet(t *testing.T, r rendered) {
	data := one[*core.Service](t, r, name).Spec.Ports[0]
	if data.Name != "http" || len(one[*core.Service](t, r, name).Spec.Ports) != 1 {
		t.Errorf("the service has ports %v", one[*core.Service](t, r, name).Spec.Ports)
	}
	for _, i := range all[*networking.Ingress](r) {
		for _, rule := range i.Spec.Rules {
			for _, path := range rule.HTTP.Paths {
				if b := path.Backend.Service; b.Name != name || b.Port.Name != data.Name {
					t.Errorf("the ingress publishes %v", b)
				}
			}
		}
	}
	for _, route := range all[*gateway.HTTPRoute](r) {
		for _, rule := range route.Spec.Rules {
			if b := rule.BackendRefs[0]; string(b.Name) != name || *b.Port != data.Port {
				t.Errorf("the route publishes %v", b)
			}
		}
	}
}

// secretsMeet checks that the chart's own secrets have every key that is read from them.
func secretsMeet(t *testing.T, r rendered) {
	made := map[string][]string{}
	for _, s := range all[*core.Secret](r) {
		made[s.Name] = slices.Collect(maps.Keys(s.Data))
		for key, value := range s.Data {
			if len(value) == 0 {
				t.Errorf("secret %s has nothing at %s", s.Name, key)
			}
		}
	}
	refer := func(ref *core.SecretKeySelector) {
		if keys, ours := made[ref.Name]; strings.HasPrefix(ref.Name, name) && (!ours || !slices.Contains(keys, ref.Key)) {
			t.Errorf("secret %s has no %s: %v", ref.Name, ref.Key, keys)
		}
	}
	for _, env := range container(t, r).Env {
		if env.ValueFrom != nil {
			refer(env.ValueFrom.SecretKeyRef)
		}
	}
	for _, m := range all[*monitoring.ServiceMonitor](r) {
		refer(m.Spec.Endpoints[0].Authorization.Credentials)
	}
}

func volumesMeet(t *testing.T, r rendered) {
	volumes := map[string]bool{}
	for _, v := range pod(t, r).Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && !strings.HasPrefix(v.Name, "tenants-") { // others create those
			one[*core.ConfigMap](t, r, v.ConfigMap.Name)
		}
		if claim := v.PersistentVolumeClaim; claim != nil && strings.HasPrefix(claim.ClaimName, name) {
			one[*core.PersistentVolumeClaim](t, r, claim.ClaimName)
		}
	}
	mounted := map[string]bool{}
	for _, m := range container(t, r).VolumeMounts {
		mounted[m.Name] = true
		if m.SubPath != "" || m.SubPathExpr != "" {
			t.Errorf("%s is mounted by a sub-path: a change would never arrive", m.MountPath)
		}
	}
	if !maps.Equal(volumes, mounted) {
		t.Errorf("volumes %v, mounts %v", volumes, mounted)
	}
}

// monitorsMeet checks that metrics are read only from the admin service.
func monitorsMeet(t *testing.T, r rendered) {
	for _, m := range all[*monitoring.ServiceMonitor](r) {
		var met []string
		for _, s := range all[*core.Service](r) {
			if labels.SelectorFromSet(m.Spec.Selector.MatchLabels).Matches(labels.Set(s.Labels)) {
				met = append(met, s.Name)
			}
		}
		if !slices.Equal(met, []string{name + "-admin"}) {
			t.Errorf("the monitor selects %v", met)
		}
		endpoint := m.Spec.Endpoints[0]
		if port := one[*core.Service](t, r, name+"-admin").Spec.Ports[0]; endpoint.Port != port.Name || endpoint.Path != "/metrics" {
			t.Errorf("the monitor reads %s%s", endpoint.Port, endpoint.Path)
		}
	}
}
