package charttest

import (
	"os"
	"testing"
)

// TestArgoCDExample: the values of the Argo CD example render, and the chart generates none of the secrets, since it would generate a new one
// at each sync.
func TestArgoCDExample(t *testing.T) {
	r := mustRender(t, argoCD(t))
	loadConfig(t, r)
	wantKinds(t, r, "ConfigMap Deployment PodDisruptionBudget Service ServiceAccount ServiceMonitor")
}

// argoCD returns the values of the example.
func argoCD(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../examples/argocd/application.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var application struct {
		Spec struct {
			Source struct {
				Path string
				Helm struct{ ValuesObject map[string]any }
			}
		}
	}
	parseYAML(t, string(text), &application)
	source := application.Spec.Source
	if _, err := os.Stat("../../" + source.Path + "/Chart.yaml"); err != nil || len(source.Helm.ValuesObject) == 0 {
		t.Fatalf("%v, %d values", err, len(source.Helm.ValuesObject))
	}
	return source.Helm.ValuesObject
}
