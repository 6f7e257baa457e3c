package rehearsal

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/process"
)

// patience bounds every wait for something that should come; only a defect uses it up.
const patience = 90 * time.Second

// node runs rendered containers as processes, and probes them as a kubelet does.
type node struct {
	site      *site
	image     image
	rendered  rendered
	container container
	grace     time.Duration
	found     map[string]bool // differences that there were
	stop      context.Context
}

// replica is a pod on the node.
type replica struct {
	name        string
	run         *process.Process
	addr, admin string
	ready       atomic.Bool
	served      atomic.Int64  // connections
	unwell      chan struct{} // closed if the kubelet would kill it
	ended       chan ending   // gets one value when it has ended after it was told to
}

// ending is how a replica ended.
type ending struct {
	took time.Duration
	code int
}

// start runs the container as it was rendered, and probes it until the node stops.
func (n *node) start(t *testing.T, name string) *replica {
	t.Helper()
	mounts := t.TempDir()
	differences := n.site.differences(mounts)
	n.mount(t, mounts, differences)
	if len(n.container.Command) > 0 {
		t.Fatalf("the container has a command of its own: %v", n.container.Command)
	}
	var args []string
	for _, arg := range n.container.Args {
		args = append(args, localised(arg, differences, n.found))
	}
	command := exec.Command(n.site.binary, args...) // for the image's entry point
	command.Dir = mounts
	for _, pair := range n.environment(t, name) {
		command.Env = append(command.Env, localised(pair, differences, n.found))
	}
	command.Env = append(command.Env, n.site.added())
	run, err := process.StartCommand(command)
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{name: name, run: run, unwell: make(chan struct{}), ended: make(chan ending, 1)}
	t.Cleanup(func() { r.cleanUp(t) })
	ctx, cancel := context.WithTimeout(n.stop, patience)
	defer cancel()
	serving, err := run.Await(ctx, "serving")
	if err != nil {
		t.Fatal(err)
	}
	r.addr, r.admin = loopback(t, serving.Listen), loopback(t, serving.Admin)
	go n.probe(r)
	return r
}

func (r *replica) cleanUp(t *testing.T) {
	r.run.Kill()
	if word := r.run.Log.Defect(); word != "" {
		t.Errorf("%s in the output of %s", word, r.name)
	}
	if t.Failed() {
		t.Logf("%s wrote:\n%s", r.name, r.run.Log)
	}
}

// loopback is a pod's address on this machine.
func loopback(t *testing.T, listening string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(listening)
	if err != nil || host != "0.0.0.0" && host != "::" {
		t.Fatalf("the container listens on %q, where the cluster does not reach it (%v)", listening, err)
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// mount lays out the volumes of ConfigMaps as the kubelet does: files are links through ..data, which is turned at once.
func (n *node) mount(t *testing.T, root string, differences []difference) {
	t.Helper()
	for _, m := range n.container.VolumeMounts {
		for _, v := range n.rendered.pod(t).Volumes {
			if v.Name != m.Name {
				continue
			}
			if v.ConfigMap == nil {
				t.Fatalf("volume %s is not rehearsed", v.Name)
			}
			dir := filepath.Join(root, m.MountPath)
			must(t, os.MkdirAll(filepath.Join(dir, "..first"), 0o750))
			must(t, os.Symlink("..first", filepath.Join(dir, "..data")))
			for file, text := range n.rendered.one(t, "ConfigMap", v.ConfigMap.Name).Data {
				must(t, os.WriteFile(filepath.Join(dir, "..first", file), []byte(localised(text, differences, n.found)), 0o600))
				must(t, os.Symlink(filepath.Join("..data", file), filepath.Join(dir, file)))
			}
		}
	}
}

// environment is the image's, the container's over it, and what the kubelet adds; nothing of this process's own.
func (n *node) environment(t *testing.T, name string) []string {
	t.Helper()
	if len(n.container.EnvFrom) > 0 {
		t.Fatal("envFrom is not rehearsed")
	}
	all := append([]string{}, n.image.env...)
	for _, e := range n.container.Env {
		value := e.Value
		if e.ValueFrom != nil {
			value = n.resolve(t, e.Name, name, e.ValueFrom)
		}
		all = append(all, e.Name+"="+value)
	}
	return append(all, "HOSTNAME="+name, "KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443",
		"KUBERNETES_PORT=tcp://10.96.0.1:443", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
}

// resolve gives a variable's value from a Secret of secrets, from a ConfigMap or from the pod itself.
func (n *node) resolve(t *testing.T, variable, name string, from *source) string {
	t.Helper()
	switch {
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		if value, ok := secrets()[ref.Name+"/"+ref.Key]; ok {
			return value
		}
	case from.ConfigMapKeyRef != nil:
		return n.rendered.one(t, "ConfigMap", from.ConfigMapKeyRef.Name).Data[from.ConfigMapKeyRef.Key]
	case from.FieldRef != nil:
		fields := map[string]string{
			"metadata.name": name, "metadata.namespace": namespace, "spec.nodeName": "node", "status.podIP": "127.0.0.1", "status.hostIP": "127.0.0.1",
		}
		if value, ok := fields[from.FieldRef.FieldPath]; ok {
			return value
		}
	}
	t.Fatalf("where %s comes from is not rehearsed: %v", variable, from)
	return ""
}

// probe asks the three probes as the kubelet does: the others when the startup probe has succeeded once.
func (n *node) probe(r *replica) {
	starting, cancel := context.WithCancel(n.stop)
	defer cancel()
	started := false
	n.watch(starting, r, n.container.StartupProbe, func(ok bool) {
		started = ok
		cancel()
	})
	if !started {
		close(r.unwell)
		return
	}
	go n.watch(n.stop, r, n.container.ReadinessProbe, r.ready.Store)
	living, dead := context.WithCancel(n.stop)
	defer dead()
	n.watch(living, r, n.container.LivenessProbe, func(ok bool) {
		select {
		case <-r.run.Ended: // by itself
			dead()
		default:
			if !ok {
				close(r.unwell)
				dead()
			}
		}
	})
}

// watch asks one probe in its period, and tells each verdict that is reached, until ctx ends.
func (n *node) watch(ctx context.Context, r *replica, p *probe, verdict func(bool)) {
	client := http.Client{
		Timeout:   time.Duration(max(1, p.TimeoutSeconds)) * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	tick := time.NewTicker(time.Duration(max(1, p.PeriodSeconds)) * time.Second)
	defer tick.Stop()
	var good, bad int
	for {
		if answers(&client, "http://"+r.admin+p.HTTPGet.Path) {
			good, bad = good+1, 0
		} else {
			good, bad = 0, bad+1
		}
		switch {
		case good >= max(1, p.SuccessThreshold):
			verdict(true)
		case bad >= p.FailureThreshold:
			verdict(false)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func answers(client *http.Client, url string) bool {
	resp, err := client.Get(url)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode >= http.StatusOK && resp.StatusCode < http.StatusBadRequest
}

// end tells a replica to end, and kills it when its grace period is over. It does not wait.
func (n *node) end(r *replica, signal syscall.Signal) error {
	began := time.Now()
	if err := r.run.Command.Process.Signal(signal); err != nil {
		return fmt.Errorf("end %s: %w", r.name, err)
	}
	go func() {
		select {
		case <-r.run.Ended:
		case <-time.After(n.grace):
			r.run.Kill()
		case <-n.stop.Done():
			r.run.Kill()
		}
		r.ended <- ending{time.Since(began), r.run.Command.ProcessState.ExitCode()}
	}()
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
