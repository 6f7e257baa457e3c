package charttest

import (
	"regexp"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// object is any Kubernetes object.
type object interface {
	runtime.Object
	meta.Object
}

// rendered is the result of rendering the chart.
type rendered struct {
	manifest, notes string
	objects         []object
}

// types returns a scheme with every type that the chart may use.
func types(t *testing.T) *runtime.Scheme {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, monitoring.AddToScheme, gateway.Install} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	known.AddKnownTypeWithName(schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}, &unstructured.Unstructured{})
	return known
}

var separator = regexp.MustCompile(`(?m)^---\s*$`)

// decode decodes every object into its type. It fails the test on an unknown kind and on an unknown or repeated field.
func decode(t *testing.T, manifest, notes string) rendered {
	t.Helper()
	known := types(t)
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, known, known, json.SerializerOptions{Yaml: true, Strict: true})
	r := rendered{manifest: manifest, notes: notes}
	for _, document := range separator.Split(manifest, -1) {
		if blank(document) {
			continue
		}
		decoded, _, err := strict.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Errorf("%v, in:\n%s", err, document)
			continue
		}
		r.objects = append(r.objects, decoded.(object))
	}
	return r
}

func blank(document string) bool {
	for line := range strings.Lines(document) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// all returns the objects of one type.
func all[T object](r rendered) []T {
	var found []T
	for _, o := range r.objects {
		if one, ok := o.(T); ok {
			found = append(found, one)
		}
	}
	return found
}

// one returns the object with a type and a name.
func one[T object](t *testing.T, r rendered, name string) T {
	t.Helper()
	for _, o := range all[T](r) {
		if o.GetName() == name {
			return o
		}
	}
	var none T
	t.Fatalf("no %T called %s", none, name)
	return none
}

func deployment(t *testing.T, r rendered) *apps.Deployment {
	t.Helper()
	return one[*apps.Deployment](t, r, name)
}

func pod(t *testing.T, r rendered) core.PodSpec {
	t.Helper()
	return deployment(t, r).Spec.Template.Spec
}

func container(t *testing.T, r rendered) core.Container {
	t.Helper()
	return pod(t, r).Containers[0]
}

// configText returns the configuration as it is mounted.
func configText(t *testing.T, r rendered) string {
	t.Helper()
	return one[*core.ConfigMap](t, r, name).Data["dewpoint.yaml"]
}
