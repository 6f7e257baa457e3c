package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	apps "k8s.io/api/apps/v1"
)

// anotherStore goes from the embedded store to Redis, which updates pods in another way, and back.
func anotherStore(t *testing.T, r *release) {
	embedded := r.install(t)
	r.values = valueSet("tenants")
	redis := r.upgrade(t)
	r.wantPods(t, redis)
	if kind := redis.deployment.Spec.Strategy.Type; kind != apps.RollingUpdateDeploymentStrategyType {
		t.Errorf("with Redis pods are updated by %s", kind)
	}
	back := r.rollback(t, "1")
	r.wantPods(t, back)
	if s := back.deployment.Spec.Strategy; s.Type != apps.RecreateDeploymentStrategyType || s.RollingUpdate != nil {
		t.Errorf("with an embedded store pods are updated by %v", s)
	}
	back.wantTemplateOf(t, embedded)
	r.values = valueSet("default")
	r.uninstall(t)
}

// autoscaled gives the number of pods to an autoscaler, which changes it, and takes it back; by either way that helm applies. No
// step may leave fewer pods than there were: the requests of all would fall on few.
func autoscaled(t *testing.T, r *release, serverSide string) {
	way := "--server-side=" + serverSide
	on := []string{"replicaCount=4", "autoscaling.enabled=true", "autoscaling.inFlight.enabled=false", "autoscaling.minReplicas="}
	enabled := func(least string) []string { return append(on[:3:3], on[3]+least) }
	fixed := r.upgradeTo(t, 4, []string{"--install", way}, "replicaCount=4")
	r.upgradeTo(t, 4, []string{way}, enabled("2")...)
	r.upgradeTo(t, 4, []string{way}, append(enabled("2"), configured)...)
	r.helm(t, append(r.upgrading(enabled("5")...), way)...)
	r.awaitPods(t, 5)
	r.upgradeTo(t, 5, []string{way}, append(enabled("5"), configured)...)
	if serverSide == "true" {
		r.wantConflict(t, r.upgrading("replicaCount=4")...)
		r.wantConflict(t, "rollback", "try", "1")
		r.helm(t, "rollback", "try", "1", "--force-conflicts", "--wait", waiting)
		r.state(t).wantTemplateOf(t, fixed)
		r.upgradeTo(t, 4, []string{way}, enabled("2")...)
		r.helm(t, append(r.upgrading(enabled("5")...), way)...)
		r.awaitPods(t, 5)
	}
	r.upgradeTo(t, 4, []string{way, "--force-conflicts=" + serverSide}, "replicaCount=4").wantTemplateOf(t, fixed)
	r.uninstall(t)
}

// wantConflict lets helm say a number that is the autoscaler's. The chart's README tells what to do about the refusal.
func (r *release) wantConflict(t *testing.T, args ...string) {
	t.Helper()
	r.installer.mustNot(t, `conflict with "kube-controller-manager" with subresource "scale"`, "", "helm", append(args, "--namespace", r.namespace)...)
}

// awaitPods waits for the autoscaler.
func (r *release) awaitPods(t *testing.T, pods int) {
	t.Helper()
	await(t, "the autoscaler", func(context.Context) error {
		if got := r.kubectl(t, "get", "deployment", name, "-o", "jsonpath={.spec.replicas}"); got != strconv.Itoa(pods) {
			return fmt.Errorf("%s pods, not %d", got, pods)
		}
		return nil
	})
}

// upgradeTo upgrades, and checks that there are so many pods.
func (r *release) upgradeTo(t *testing.T, pods int32, flags []string, changes ...string) state {
	t.Helper()
	r.helm(t, slices.Concat(r.upgrading(changes...), flags, []string{"--wait", waiting})...)
	s := r.state(t)
	if got := *s.deployment.Spec.Replicas; got != pods {
		t.Errorf("with %q there are %d pods, not %d", changes, got, pods)
	}
	return s
}

// hot changes what running pods take up by themselves: none is replaced, and the configuration is there.
func hot(t *testing.T, r *release) {
	before := r.install(t)
	const path = "jsonpath={.data.dewpoint\\.yaml}"
	was := r.kubectl(t, "get", "configmap", name, "-o", path)
	after := r.upgrade(t, "config.session.headers={x-run-id}")
	after.wantUntouched(t, before)
	if is := r.kubectl(t, "get", "configmap", name, "-o", path); is == was || is == "" {
		t.Errorf("the configuration was and is\n%s", is)
	}
	r.upgrade(t, configured).wantRolled(t, after)
	r.uninstall(t)
}
