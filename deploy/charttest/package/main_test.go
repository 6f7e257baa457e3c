package main

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/registry"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
)

// The layout holds what Helm pulls from a registry: the chart, by its version.
func TestLayoutHoldsTheChart(t *testing.T) {
	dir := t.TempDir()
	if _, err := write(t.Context(), "../../helm", dir); err != nil {
		t.Fatal(err)
	}
	layout, err := oci.New(filepath.Join(dir, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := layout.Resolve(t.Context(), "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	parts, err := content.Successors(t.Context(), layout, manifest)
	if err != nil || len(parts) != 2 || parts[0].MediaType != registry.ConfigMediaType || parts[1].MediaType != registry.ChartLayerMediaType {
		t.Fatalf("%v, %v", parts, err)
	}
	r, err := layout.Fetch(t.Context(), parts[1])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	archive, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	chart, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil || chart.Name() != "dewpoint" || len(chart.Templates) < 20 {
		t.Errorf("%v, %v", chart, err)
	}
}
