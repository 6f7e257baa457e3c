package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
)

const (
	chart      = "../../deploy/helm"
	name       = "try-dewpoint" // of the Deployment of a release called try
	waiting    = "--timeout=2m"
	configured = "config.limits.max_header=40KiB" // is read at start, and so brings new pods
)

// release is a release called try, in a namespace of its own.
type release struct {
	*plane
	namespace string
	values    string // the file of the value set
	empty     inventory
}

// state is what a release is at a time.
type state struct {
	objects    inventory
	deployment apps.Deployment
	token      string // base64, empty if the chart makes none
}

func valueSet(name string) string { return filepath.Join(chart, "ci", name+".yaml") }

// site makes the namespace for a value set, and what the set expects there.
func (p *plane) site(t *testing.T, namespace, set string) *release {
	t.Helper()
	text, err := os.ReadFile("testdata/namespace.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.root.must(t, strings.ReplaceAll(string(text), "NAMESPACE", namespace), "kubectl", "create", "-f", "-")
	r := &release{plane: p, namespace: namespace, values: valueSet(set)}
	await(t, "namespace "+namespace, func(context.Context) error { return r.settled(t) })
	r.empty = p.everything(t, namespace)
	return r
}

// settled says whether the namespace has what the controllers put into each one, and the installer may work there.
func (r *release) settled(t *testing.T) error {
	found := r.everything(t, r.namespace)
	for _, object := range []string{"ServiceAccount/default", "ConfigMap/kube-root-ca.crt"} {
		if found[object] == "" {
			return fmt.Errorf("no %s", object)
		}
	}
	_, beside, err := output(r.installer.command(filepath.Join(r.bin, "kubectl"), "auth", "can-i", "create", "servicemonitors", "-n", r.namespace), "")
	if err != nil {
		return fmt.Errorf("rights of the installer: %w %s", err, beside)
	}
	return nil
}

func (r *release) helm(t *testing.T, args ...string) string {
	t.Helper()
	return r.installer.must(t, "", "helm", append(args, "--namespace", r.namespace)...)
}

func (r *release) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return r.installer.must(t, "", "kubectl", append([]string{"--namespace", r.namespace}, args...)...)
}

// install installs the chart, and waits as long as helm does.
func (r *release) install(t *testing.T) state {
	t.Helper()
	r.helm(t, "install", "try", chart, "--values", r.values, "--wait", waiting)
	return r.state(t)
}

// upgrade changes values, which are laid over the set.
func (r *release) upgrade(t *testing.T, changes ...string) state {
	t.Helper()
	r.helm(t, append(r.upgrading(changes...), "--wait", waiting)...)
	return r.state(t)
}

func (r *release) upgrading(changes ...string) []string {
	args := []string{"upgrade", "try", chart, "--values", r.values}
	for _, change := range changes {
		args = append(args, "--set", change)
	}
	return args
}

func (r *release) rollback(t *testing.T, revision string) state {
	t.Helper()
	r.helm(t, "rollback", "try", revision, "--wait", waiting)
	return r.state(t)
}

// state waits until all pods are new, by the command that the notes tell, and reads the release.
func (r *release) state(t *testing.T) state {
	t.Helper()
	r.kubectl(t, "rollout", "status", "deployment/"+name, waiting)
	manifest := r.helm(t, "get", "manifest", "try")
	s := state{objects: read(r.installer.must(t, manifest, "kubectl", "--namespace", r.namespace, "get", "-f", "-", "-o", identities))}
	if err := json.Unmarshal([]byte(r.kubectl(t, "get", "deployment", name, "-o", "json")), &s.deployment); err != nil {
		t.Fatal(err)
	}
	if _, made := s.objects["Secret/"+name+"-admin"]; made {
		s.token = r.kubectl(t, "get", "secret", name+"-admin", "-o", "jsonpath={.data.token}")
	}
	return s
}

// kept are the objects that outlive the release, as the chart says of them.
func (r *release) kept(t *testing.T) []string {
	t.Helper()
	var claims struct {
		Items []struct {
			Metadata struct {
				Name        string
				Annotations map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(r.kubectl(t, "get", "persistentvolumeclaims", "-o", "json")), &claims); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, claim := range claims.Items {
		if claim.Metadata.Annotations["helm.sh/resource-policy"] == "keep" {
			names = append(names, "PersistentVolumeClaim/"+claim.Metadata.Name)
		}
	}
	return names
}
