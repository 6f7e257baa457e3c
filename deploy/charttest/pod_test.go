package charttest

import (
	"math"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
)

// The restricted profile of the Pod Security Standards, and what goes beyond it.
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

// A pod may take as long to end as its own shutdown takes, and a little; the drain is the process's, not a hook's.
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

// Where another pod takes over, a pod that ends goes on serving until those who follow the readiness probe alone, such as a
// balancer outside of the cluster, have seen that it is unready.
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

// With Redis an update first adds a pod and then ends one. The embedded store's file is held by one process, which must
// have gone before the next begins.
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

// env gives the container's variables; those from secrets have a value that any check accepts.
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
