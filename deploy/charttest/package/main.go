// Command package writes the chart to a folder, as an archive and, in its folder oci, as an OCI layout that tools for registries
// copy: package CHART FOLDER.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/registry"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "package: takes the chart's folder and the folder to write to")
		os.Exit(2)
	}
	archive, err := write(context.Background(), os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
	fmt.Println(archive)
}

// write returns the archive's path. The layout's one tag is the chart's version.
func write(ctx context.Context, from, to string) (string, error) {
	loaded, err := loader.LoadDir(from)
	if err != nil {
		return "", fmt.Errorf("load chart: %w", err)
	}
	archive, err := chartutil.Save(loaded, to)
	if err != nil {
		return "", fmt.Errorf("save archive: %w", err)
	}
	blob, err := os.ReadFile(archive) //nolint:gosec // it was just written
	if err != nil {
		return "", fmt.Errorf("read archive: %w", err)
	}
	about, err := json.Marshal(loaded.Metadata)
	if err != nil {
		return "", fmt.Errorf("write metadata: %w", err)
	}
	layout, err := oci.New(filepath.Join(to, "oci"))
	if err != nil {
		return "", fmt.Errorf("make layout: %w", err)
	}
	config, err := oras.PushBytes(ctx, layout, registry.ConfigMediaType, about)
	if err != nil {
		return "", fmt.Errorf("add metadata: %w", err)
	}
	content, err := oras.PushBytes(ctx, layout, registry.ChartLayerMediaType, blob)
	if err != nil {
		return "", fmt.Errorf("add archive: %w", err)
	}
	manifest, err := oras.PackManifest(ctx, layout, oras.PackManifestVersion1_1, "", oras.PackManifestOptions{
		ConfigDescriptor: &config,
		Layers:           []ocispec.Descriptor{content},
	})
	if err != nil {
		return "", fmt.Errorf("add manifest: %w", err)
	}
	if err := layout.Tag(ctx, manifest, loaded.Metadata.Version); err != nil {
		return "", fmt.Errorf("tag layout: %w", err)
	}
	return archive, nil
}
