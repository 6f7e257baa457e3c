package charttest

import (
	"math"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
)

// TestPodsAreRestricted: pods satisfy the restricted profile of the Pod Security Standards, and stricter rules of our own.
func TestPodsAreRestricted(t *testing.T) {
	eachSet(t, func(t *testing.T, r rendered) {
		p, c := pod(t, r), container(t, r)
		if ctx := p.SecurityContext; !*ctx.RunAsNonRoot || *ctx.RunAsUser != 65532 || ctx.SeccompProfile.Type != "RuntimeDefault" {
			t.Errorf("pod: %v", ctx)
		}
		ctx := c.SecurityContext
		if *ctx.AllowPrivilegeEscalation || !*ctx.ReadOnlyRootFilesystem || len(ctx.Capabilities.Drop) != 1 || ctx.Capabilities.Drop[0] != "ALL" {
			t.Errorf("container: %v", ctx)
		}
		if len(ctx.Capabilities.Add) > 0 || ctx.Privileged != nil || p.HostNetwork || p.HostPID || p.HostIPC {
			t.Error("more rights than it needs")
		}
		if *p.AutomountServiceAccountToken || *p.EnableServiceLinks {
			t.Error("the pod is given a token or service links")
		}
		for _, v := range p.Volumes {
			if v.HostPath != nil {
				t.Errorf("%s is a folder of the node", v.Name)
			}
		}
		if c.Command != nil || strings.Join(c.Args, " ") != "serve --config /etc/dewpoint/dewpoint.yaml" || c.Lifecycle != nil {
			t.Errorf("runs %v %v", c.Command, c.Args)
		}
	})
}

// TestGraceFollowsTheShutdown: a pod's grace period is a little longer than the shutdown of its process. The process drains itself, without a
// hook.
func TestGraceFollowsTheShutdown(t *testing.T) {
	eachSet(t, func(t *testing.T, r rendered) {
		var c struct {
			Shutdown struct{ Delay, Timeout string }
		}
		parseYAML(t, configText(t, r), &c)
		d := deployment(t, r).Spec
		want := int64(math.Ceil((duration(t, c.Shutdown.Delay) + duration(t, c.Shutdown.Timeout)).Seconds())) + 15
		if got := *d.Template.Spec.TerminationGracePeriodSeconds; got != want {
			t.Errorf("the pod has %d s to end, and needs %d", got, want)
		}
		if got := int64(*d.ProgressDeadlineSeconds); got < want+60 {
			t.Errorf("an update is given up after %d s, and a pod may take %d to end", got, want)
		}
	})
	for shutdown, want := range map[string]int64{
		"{delay: 0s, timeout: 1h30m}": 5415, "{delay: 1500ms, timeout: 2.5s}": 19, "{delay: '0', timeout: 1m0.5s}": 76,
	} {
		r := mustRender(t, from(t, "config: {shutdown: "+shutdown+"}"))
		if got := *pod(t, r).TerminationGracePeriodSeconds; got != want {
			t.Errorf("%s: the pod has %d s to end, and needs %d", shutdown, got, want)
		}
	}
}

// TestUnreadyBeforeTheDelayIsOver: if there are other pods, a pod that ends continues to serve until clients that rely only on the readiness
// probe, such as a load balancer outside of the cluster, have noticed that it is not ready.
func TestUnreadyBeforeTheDelayIsOver(t *testing.T) {
	eachSet(t, func(t *testing.T, r rendered) {
		if deployment(t, r).Spec.Strategy.Type == apps.RecreateDeploymentStrategyType {
			return
		}
		p, delay := container(t, r).ReadinessProbe, loadConfig(t, r).Shutdown.Delay
		if seen := time.Duration(p.PeriodSeconds*p.FailureThreshold) * time.Second; seen >= delay {
			t.Errorf("its probe says so after up to %s, and it serves on for %s", seen, delay)
		}
	})
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestUpdatesSuitTheStore: with Redis, an update adds a pod before it ends one. With the embedded store, the old pod must end before the new
// one starts, because only one process can open the file.
func TestUpdatesSuitTheStore(t *testing.T) {
	eachSet(t, func(t *testing.T, r rendered) {
		d := deployment(t, r).Spec
		if strings.Contains(configText(t, r), "type: redis") {
			u := d.Strategy.RollingUpdate
			if d.Strategy.Type != apps.RollingUpdateDeploymentStrategyType || u.MaxUnavailable.IntVal != 0 || u.MaxSurge.IntVal != 1 {
				t.Errorf("updates by %v", d.Strategy)
			}
			return
		}
		if d.Strategy.Type != apps.RecreateDeploymentStrategyType || *d.Replicas != 1 {
			t.Errorf("%d pods, updates by %v", *d.Replicas, d.Strategy)
		}
	})
}

func TestMemoryLimitOfTheRuntime(t *testing.T) {
	for values, want := range map[string]string{
		"{}":                                   "966367641",
		"resources: {limits: {memory: 512Mi}}": "483183820",
		"resources: {limits: {memory: 2G}}\nmemoryLimitPercent: 80": "1600000000",
		"resources: {limits: {memory: 1.5Gi}}":                      "1449551462",
		"resources: {limits: {memory: 1000000000}}":                 "900000000",
		"resources: {limits: null}":                                 "",
		"memoryLimitPercent: 0":                                     "",
	} {
		if got := env(t, mustRender(t, from(t, values)))["GOMEMLIMIT"]; got != want {
			t.Errorf("%s: GOMEMLIMIT is %q, and should be %q", values, got, want)
		}
	}
}

// env returns the container's variables. Those from secrets have a value that every check accepts.
func env(t *testing.T, r rendered) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, e := range container(t, r).Env {
		found[e.Name] = e.Value
		if e.ValueFrom != nil {
			found[e.Name] = "dummy-secret-of-" + e.Name
		}
	}
	return found
}
