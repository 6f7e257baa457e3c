package charttest

import (
	"reflect"
	"strconv"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// TestUpgradesBetweenSets: fields that Kubernetes does not allow to change are the same in all value sets. Otherwise an upgrade from one to
// another would fail.
func TestUpgradesBetweenSets(t *testing.T) {
	before := mustRender(t, sets(t)["default"])
	eachSet(t, func(t *testing.T, after rendered) {
		if is, was := deployment(t, after).Spec.Selector, deployment(t, before).Spec.Selector; !reflect.DeepEqual(is, was) {
			t.Errorf("the Deployment selects %v, and did %v", is, was)
		}
		for _, claim := range all[*core.PersistentVolumeClaim](after) {
			if was := one[*core.PersistentVolumeClaim](t, before, claim.Name); !reflect.DeepEqual(claim.Spec, was.Spec) {
				t.Errorf("claims %v, and did %v", claim.Spec, was.Spec)
			}
		}
		for _, secret := range all[*core.Secret](after) {
			if secret.Immutable != nil || secret.Type != core.SecretTypeOpaque {
				t.Errorf("secret %s is %s", secret.Name, secret.Type)
			}
		}
	})
}

// TestSelectorOutlivesVersions: another version of the chart has the same selector, which contains nothing that a new version changes.
func TestSelectorOutlivesVersions(t *testing.T) {
	want := map[string]string{"app.kubernetes.io/name": "dewpoint", "app.kubernetes.io/instance": "try"}
	if got := deployment(t, mustRender(t, nil)).Spec.Selector.MatchLabels; !reflect.DeepEqual(got, want) {
		t.Errorf("selects %v", got)
	}
}

// cluster is a fake cluster with some objects.
type cluster struct{ client dynamic.Interface }

func clusterOf(t *testing.T, objects ...runtime.Object) cluster {
	return cluster{fake.NewSimpleDynamicClient(types(t), objects...)}
}

// GetClientFor returns a client for the kinds that the chart looks up.
func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	known := schema.FromAPIVersionAndKind(apiVersion, kind)
	resource, _ := apimeta.UnsafeGuessKindToResource(known)
	return c.client.Resource(resource), true, nil
}

// renderIn renders one template as 'helm upgrade' does, with a cluster to look things up in.
func renderIn(t *testing.T, c cluster, values map[string]any, template string) string {
	t.Helper()
	loaded := load(t)
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *kubernetes(t)
	options := common.ReleaseOptions{Name: "try", Namespace: namespace, Revision: 2, IsUpgrade: true}
	all, err := util.ToRenderValues(loaded, util.MergeTables(map[string]any{}, values), options, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.RenderWithClientProvider(loaded, all, c)
	if err != nil {
		t.Fatal(err)
	}
	return files["dewpoint/templates/"+template]
}

// TestTokenIsKept: an upgrade keeps the admin token that was generated at the first install, unless the values have a token.
func TestTokenIsKept(t *testing.T) {
	kept := &core.Secret{
		TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: meta.ObjectMeta{Name: name + "-admin", Namespace: namespace},
		Data:       map[string][]byte{"token": []byte("the-first-token")},
	}
	tokenIn := func(c cluster, values string) string {
		r := decode(t, renderIn(t, c, from(t, values), "secret-admin.yaml"), "")
		return string(one[*core.Secret](t, r, name+"-admin").Data["token"])
	}
	if got := tokenIn(clusterOf(t, kept), "{}"); got != "the-first-token" {
		t.Errorf("an upgrade makes the token %q", got)
	}
	if got := tokenIn(clusterOf(t, kept), "adminToken: {value: given}"); got != "given" {
		t.Errorf("the token is %q", got)
	}
	first, second := tokenIn(clusterOf(t), "{}"), tokenIn(clusterOf(t), "{}")
	if len(first) != 40 || first == second {
		t.Errorf("new tokens are %q and %q", first, second)
	}
}

// TestAutoscalingKeepsPods: if autoscaling is enabled for a running release, the number of pods stays as it is, rather than becoming 1. If Helm
// applies server-side and the autoscaler has set the number, the chart leaves it out. Otherwise it repeats the current number, because a
// missing one would become 1.
func TestAutoscalingKeepsPods(t *testing.T) {
	mark := func(manager string, operation meta.ManagedFieldsOperationType, subresource string) meta.ManagedFieldsEntry {
		return meta.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource}
	}
	applied, updated := mark("helm", meta.ManagedFieldsOperationApply, ""), mark("helm", meta.ManagedFieldsOperationUpdate, "")
	scaled := mark("kube-controller-manager", meta.ManagedFieldsOperationUpdate, "scale")
	running := func(marks ...meta.ManagedFieldsEntry) cluster {
		d := &apps.Deployment{
			TypeMeta:   meta.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: meta.ObjectMeta{Name: name, Namespace: namespace, ManagedFields: marks},
		}
		d.Spec.Replicas = new(int32(4))
		return clusterOf(t, d)
	}
	for _, tt := range []struct {
		what    string
		cluster cluster
		enabled bool
		want    int32 // -1: the chart leaves it out
	}{
		{"nothing runs", clusterOf(t), true, -1},
		{"it is the chart's", running(applied), true, 4},
		{"it is the autoscaler's", running(applied, scaled), true, -1},
		{"it is the chart's, applied by the client", running(updated), true, 4},
		{"it is the autoscaler's, applied by the client", running(updated, scaled), true, 4},
		{"there is no autoscaler any more", running(applied, scaled), false, 3},
	} {
		values := over(sets(t)["production"], "autoscaling: {enabled: "+strconv.FormatBool(tt.enabled)+"}", t)
		got := deployment(t, decode(t, renderIn(t, tt.cluster, values, "deployment.yaml"), "")).Spec.Replicas
		if said := got != nil; said != (tt.want >= 0) || said && *got != tt.want {
			t.Errorf("%s: asks for %v pods, not %d", tt.what, got, tt.want)
		}
	}
}
