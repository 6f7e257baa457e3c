package charttest

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	"sigs.k8s.io/yaml"
)

const (
	chartDir  = "../helm"
	name      = "try-dewpoint" // of the objects of a release called try
	namespace = "agents"
)

// kubernetes returns the Kubernetes version that the chart is rendered for.
func kubernetes(t *testing.T) *common.KubeVersion {
	t.Helper()
	version, err := common.ParseKubeVersion("v1.31.0")
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// sets returns the value sets in ci, by name.
func sets(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartDir, "ci", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]any{}
	for _, file := range files {
		values, err := common.ReadValuesFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(filepath.Base(file), ".yaml")] = values
	}
	return found
}

// eachSet renders every value set and runs a check on the result.
func eachSet(t *testing.T, check func(*testing.T, rendered)) {
	for set, values := range sets(t) {
		t.Run(set, func(t *testing.T) { check(t, mustRender(t, values)) })
	}
}

// render renders the chart as 'helm template' does.
func render(t *testing.T, values map[string]any) (*release.Release, error) {
	t.Helper()
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy = action.DryRunClient
	install.ReleaseName, install.Namespace = "try", namespace
	install.KubeVersion = kubernetes(t)
	rel, err := install.Run(load(t), util.MergeTables(map[string]any{}, values))
	if err != nil {
		return nil, err
	}
	return rel.(*release.Release), nil
}

func mustRender(t *testing.T, values map[string]any) rendered {
	t.Helper()
	rel, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, rel.Manifest, rel.Info.Notes)
}

// from parses values.
func from(t *testing.T, text string) map[string]any {
	t.Helper()
	values, err := common.ReadValues([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// over returns base with other values merged over it. It does not change base.
func over(base map[string]any, text string, t *testing.T) map[string]any {
	t.Helper()
	top := from(t, text)
	return util.MergeTables(top, maps.Clone(base))
}

func chartFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chartDir, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parseYAML(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
