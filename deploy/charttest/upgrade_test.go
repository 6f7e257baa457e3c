package charttest

import (
	"reflect"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// What Kubernetes lets nobody change must be the same for every way to run, or an upgrade between them would fail.
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

// A chart of another version has the same selector: it holds nothing that a release changes.
func TestSelectorOutlivesVersions(t *testing.T) {
	want := map[string]string{"app.kubernetes.io/name": "dewpoint", "app.kubernetes.io/instance": "try"}
	if got := deployment(t, mustRender(t, nil)).Spec.Selector.MatchLabels; !reflect.DeepEqual(got, want) {
		t.Errorf("selects %v", got)
	}
}

// cluster is one that has some objects.
type cluster struct{ client dynamic.Interface }

func clusterOf(t *testing.T, objects ...runtime.Object) cluster {
	return cluster{fake.NewSimpleDynamicClient(types(t), objects...)}
}

// GetClientFor knows secrets, which are all that the chart looks up.
func (c cluster) GetClientFor(_, _ string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}), true, nil
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

// The admin token that was made at the first install stays; one that is given takes its place.
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
