package charttest

import (
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
)

// TestLint lints the chart like 'helm lint --strict': a warning is a failure too.
func TestLint(t *testing.T) {
	for set, values := range sets(t) {
		t.Run(set, func(t *testing.T) {
			lint := action.NewLint()
			lint.Strict, lint.Namespace, lint.KubeVersion = true, namespace, kubernetes(t)
			result := lint.Run([]string{chartDir}, values)
			if result.TotalChartsLinted != 1 {
				t.Errorf("%d charts were linted: %v", result.TotalChartsLinted, result.Errors)
			}
			for _, message := range result.Messages {
				if message.Severity > support.InfoSev {
					t.Error(message)
				}
			}
		})
	}
}

// TestSetsAreThere: ci contains the value sets that the chart supports.
func TestSetsAreThere(t *testing.T) {
	found := sets(t)
	for _, set := range []string{
		"default", "minimal", "embedded-pvc", "redis-url", "redis-sentinel", "redis-cluster-tls", "tenants", "production", "gateway",
	} {
		if found[set] == nil {
			t.Errorf("ci/%s.yaml is missing", set)
		}
	}
}
