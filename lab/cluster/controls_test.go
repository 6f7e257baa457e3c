package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// controls does what must go wrong, so that no one takes a cluster that accepts everything for a chart without a defect.
func controls(t *testing.T, r *release) {
	r.wantUnknownFieldRefused(t)
	r.wantSelectorRefused(t)
	r.wantPrivilegesRefused(t)
	r.installer.mustNot(t, "forbidden", "", "kubectl", "create", "namespace", "of-the-installer")
	r.installer.mustNot(t, "forbidden", "", "kubectl", "get", "secrets", "-n", "kube-system")
}

func (r *release) wantUnknownFieldRefused(t *testing.T) {
	t.Helper()
	manifest := r.helm(t, "template", "try", chart, "--values", r.values)
	misspelt := strings.Replace(manifest, "minReadySeconds:", "minimumReadySeconds:", 1)
	r.installer.mustNot(t, `unknown field "spec.minimumReadySeconds"`, misspelt,
		"kubectl", "apply", "--dry-run=server", "--validate=strict", "--namespace", r.namespace, "-f", "-")
}

// wantSelectorRefused changes what must not change.
func (r *release) wantSelectorRefused(t *testing.T) {
	t.Helper()
	r.install(t)
	args := append(r.upgrading("fullnameOverride="+name, "nameOverride=other"), "--namespace", r.namespace)
	r.installer.mustNot(t, "field is immutable", "", "helm", args...)
	r.uninstall(t)
}

// wantPrivilegesRefused installs pods that the namespace does not admit: the server warns of them, and there are none.
func (r *release) wantPrivilegesRefused(t *testing.T) {
	t.Helper()
	r.installer.mustNot(t, "would violate PodSecurity", "", "helm", "install", "try", chart, "--namespace", r.namespace,
		"--values", r.values, "--set", "securityContext.allowPrivilegeEscalation=true")
	await(t, "pods that are not admitted", func(context.Context) error {
		if !strings.Contains(r.kubectl(t, "get", "deployment", name, "-o", "jsonpath={.status.conditions}"), "violates PodSecurity") {
			return errors.New("the Deployment says nothing of it")
		}
		return nil
	})
	if pods := r.kubectl(t, "get", "pods", "-o", "name"); pods != "" {
		t.Errorf("admitted: %s", pods)
	}
	r.helm(t, "uninstall", "try", "--wait", waiting)
}
