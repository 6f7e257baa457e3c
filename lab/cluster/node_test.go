package cluster

import (
	"context"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startNode stands in for nodes until the test ends: each pod that was admitted is soon ready. Nothing is run.
func (p *plane) startNode(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			p.watchPods(ctx)
		}
	}()
	t.Cleanup(func() { stop(); <-done })
}

// watchPods begins with the pods that there are, and goes on until the server ends the watch.
func (p *plane) watchPods(ctx context.Context) {
	pods, err := p.client.CoreV1().Pods("").Watch(ctx, meta.ListOptions{})
	if err != nil {
		return
	}
	defer pods.Stop()
	for event := range pods.ResultChan() {
		if pod, ok := event.Object.(*core.Pod); ok && pod.DeletionTimestamp == nil && pod.Status.Phase == core.PodPending {
			pod.Status.Phase, pod.Status.Conditions = core.PodRunning, ready()
			// A pod that changed or went meanwhile comes again, or need not.
			_, _ = p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, meta.UpdateOptions{})
		}
	}
}

// ready says it has been so for a minute, so that minReadySeconds are over.
func ready() []core.PodCondition {
	var conditions []core.PodCondition
	for _, kind := range []core.PodConditionType{core.PodScheduled, core.PodInitialized, core.ContainersReady, core.PodReady} {
		since := meta.NewTime(time.Now().Add(-time.Minute))
		conditions = append(conditions, core.PodCondition{Type: kind, Status: core.ConditionTrue, LastTransitionTime: since})
	}
	return conditions
}
