package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCluster installs each value set as a stranger would, changes it, goes back, and removes it.
func TestCluster(t *testing.T) {
	p := start(t)
	p.furnish(t)
	for _, set := range sets(t) {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			r := p.site(t, "set-"+set, set)
			r.wantAccepted(t)
			r.rehearse(t)
			t.Logf("%s: installed, upgraded, rolled back and uninstalled, in %.0f s", set, time.Since(began).Seconds())
		})
	}
	for _, move := range []struct {
		name, set string
		make      func(*testing.T, *release)
	}{
		{"another-store", "default", anotherStore},
		{"autoscaled", "redis-url", func(t *testing.T, r *release) { autoscaled(t, r, "true") }},
		{"autoscaled-by-the-client", "redis-url", func(t *testing.T, r *release) { autoscaled(t, r, "false") }},
		{"hot", "redis-cluster-tls", hot},
		{"controls", "default", controls},
	} {
		t.Run(move.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			move.make(t, p.site(t, move.name, move.set))
			t.Logf("%s: done, in %.0f s", move.name, time.Since(began).Seconds())
		})
	}
}

// sets are the names of the value sets.
func sets(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chart, "ci", "*.yaml"))
	if err != nil || len(files) < 9 {
		t.Fatalf("%d value sets: %v", len(files), err)
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".yaml")
	}
	return files
}

// wantAccepted lets the server check the whole manifest, unknown and doubled fields too.
func (r *release) wantAccepted(t *testing.T) {
	t.Helper()
	manifest := r.helm(t, "template", "try", chart, "--values", r.values)
	r.installer.must(t, manifest, "kubectl", "apply", "--dry-run=server", "--validate=strict", "--namespace", r.namespace, "-f", "-")
}

// rehearse takes a release from its installation to its end.
func (r *release) rehearse(t *testing.T) {
	first := r.install(t)
	r.wantPods(t, first)
	r.wantNotes(t)
	again := r.upgrade(t)
	again.wantUntouched(t, first)
	changed := r.upgrade(t, configured)
	changed.wantRolled(t, first)
	back := r.rollback(t, "2")
	back.wantRolled(t, changed)
	back.wantTemplateOf(t, first)
	r.uninstall(t)
}

// wantPods checks that as many pods as the Deployment asks for were admitted and are its.
func (r *release) wantPods(t *testing.T, s state) {
	t.Helper()
	pods := strings.Fields(r.kubectl(t, "get", "pods", "-l", "app.kubernetes.io/instance=try", "-o", "name"))
	if want := int(*s.deployment.Spec.Replicas); len(pods) != want || int(s.deployment.Status.AvailableReplicas) != want {
		t.Errorf("%d pods were admitted, %d are available, and %d are wanted", len(pods), s.deployment.Status.AvailableReplicas, want)
	}
}

var tokenCommand = regexp.MustCompile(`\$\((kubectl .*get secret .*\| base64 -d)\)`)

// wantNotes runs the commands of the notes that need no pod: how to wait, and how the admin token is read.
func (r *release) wantNotes(t *testing.T) {
	t.Helper()
	notes := r.helm(t, "get", "notes", "try")
	_, wait, found := strings.Cut(notes, "\n  kubectl "+"-n "+r.namespace+" rollout status ")
	if !found {
		t.Fatalf("the notes do not say how to wait:\n%s", notes)
	}
	deployment, _, _ := strings.Cut(wait, "\n")
	r.kubectl(t, "rollout", "status", deployment)
	command := tokenCommand.FindStringSubmatch(notes)
	if command == nil {
		t.Fatalf("the notes do not say how to read the token:\n%s", notes)
	}
	if token, beside, err := output(r.installer.command("sh", "-c", command[1]), ""); err != nil || beside != "" || len(token) < 8 {
		t.Errorf("%s: a token of %d bytes, %v %s", command[1], len(token), err, beside)
	}
	for _, service := range []string{name, name + "-admin"} {
		if strings.Contains(notes, "service/"+service+" ") {
			r.kubectl(t, "get", "service", service)
		}
	}
}

// wantUntouched checks that the same values again change nothing.
func (s state) wantUntouched(t *testing.T, before state) {
	t.Helper()
	s.wantSameObjects(t, before)
	if len(s.objects) < 4 {
		t.Errorf("the release is only %v", s.objects)
	}
	if is, was := s.deployment.Generation, before.deployment.Generation; is != was {
		t.Errorf("the same values change the Deployment from generation %d to %d", was, is)
	}
}

// wantRolled checks that the configuration brought new pods, and that everything is still the same object.
func (s state) wantRolled(t *testing.T, before state) {
	t.Helper()
	s.wantSameObjects(t, before)
	const sum = "checksum/config"
	is, was := s.deployment.Spec.Template.Annotations[sum], before.deployment.Spec.Template.Annotations[sum]
	if is == was || len(is) != 64 {
		t.Errorf("%s was %q and is %q", sum, was, is)
	}
	const revision = "deployment.kubernetes.io/revision"
	if is, was := s.deployment.Annotations[revision], before.deployment.Annotations[revision]; is == was {
		t.Errorf("no new pods: still revision %s", was)
	}
	if is, was := *s.deployment.Spec.Replicas, *before.deployment.Spec.Replicas; is != was {
		t.Errorf("%d pods were asked for, and are %d", was, is)
	}
}

// wantSameObjects checks that none was added, lost, or made anew, and that the admin token stayed.
func (s state) wantSameObjects(t *testing.T, before state) {
	t.Helper()
	if lost, new := before.objects.without(s.objects), s.objects.without(before.objects); len(lost)+len(new) > 0 {
		t.Errorf("lost or made anew: %q; new: %q", lost, new)
	}
	if s.token != before.token {
		t.Error("the admin token has changed")
	}
	if _, err := base64.StdEncoding.DecodeString(s.token); err != nil {
		t.Error(err)
	}
}

// wantTemplateOf checks that the pods are made as they were.
func (s state) wantTemplateOf(t *testing.T, before state) {
	t.Helper()
	if is, was := s.deployment.Spec.Template, before.deployment.Spec.Template; !reflect.DeepEqual(is, was) {
		t.Errorf("the pods were made of\n%+v\nand are of\n%+v", was, is)
	}
}

// uninstall removes the release, and waits until nothing of it is left but what is kept; that serves the next installation.
func (r *release) uninstall(t *testing.T) {
	t.Helper()
	kept := r.kept(t)
	before := r.everything(t, r.namespace)
	if made := before.without(r.empty); len(made) < 6 || len(kept) > 1 {
		t.Errorf("the release has made %q, of which %q are kept", made, kept)
	}
	r.helm(t, "uninstall", "try", "--wait", waiting)
	r.wantOnly(t, kept)
	if len(kept) == 0 {
		return
	}
	r.install(t)
	after := r.everything(t, r.namespace)
	for _, object := range kept {
		if after[object] != before[object] {
			t.Errorf("%s was kept, and is another after an installation", object)
		}
	}
	r.helm(t, "uninstall", "try", "--wait", waiting)
	r.wantOnly(t, kept)
}

// wantOnly waits until the namespace holds what it did before the release, and what was kept.
func (r *release) wantOnly(t *testing.T, kept []string) {
	t.Helper()
	await(t, "uninstall", func(context.Context) error {
		if left := r.everything(t, r.namespace).without(r.empty); !slices.Equal(left, kept) {
			return fmt.Errorf("left: %q, to be kept: %q", left, kept)
		}
		return nil
	})
}
