package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// plane is a control plane on loopback, in a folder of its own, for as long as the test lasts.
type plane struct {
	bin, dir  string
	url       string
	keys      keys
	client    kubernetes.Interface // of root
	root      user
	installer user // who has in each namespace what the cluster role admin allows, and nothing else
}

// start starts everything and waits for it. The programs are in the folder that DEWPOINT_CLUSTER_BIN names.
func start(t *testing.T) *plane {
	t.Helper()
	bin := os.Getenv("DEWPOINT_CLUSTER_BIN")
	if bin == "" {
		t.Skip("SKIPPED: nothing was installed anywhere: run make cluster, which builds Kubernetes first")
	}
	p := &plane{bin: bin, dir: t.TempDir()}
	p.keys = newKeys(t, p.dir)
	p.startServer(t, p.startStore(t))
	p.startControllers(t)
	p.startNode(t)
	return p
}

// startStore starts etcd in this process, and gives its address.
func (p *plane) startStore(t *testing.T) string {
	t.Helper()
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.LogOutputs = filepath.Join(p.dir, "etcd"), "warn", []string{filepath.Join(p.dir, "etcd.log")}
	c.ListenClientUrls, c.AdvertiseClientUrls, c.ListenPeerUrls, c.AdvertisePeerUrls = anywhere, anywhere, anywhere, anywhere
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.UnsafeNoFsync = true
	store, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	await(t, "etcd", func(context.Context) error {
		select {
		case <-store.Server.ReadyNotify():
			return nil
		default:
			return errors.New("is not ready")
		}
	})
	return "http://" + store.Clients[0].Addr().String()
}

func (p *plane) startServer(t *testing.T, store string) {
	t.Helper()
	port := freePort(t)
	p.url = fmt.Sprintf("https://127.0.0.1:%d", port)
	tokens := p.newUsers(t)
	ended := run(t, filepath.Join(p.bin, "kube-apiserver"), filepath.Join(p.dir, "kube-apiserver.log"),
		"--etcd-servers="+store,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", // a server on loopback is not announced
		"--tls-cert-file="+p.keys.cert, "--tls-private-key-file="+p.keys.key,
		"--service-cluster-ip-range=10.0.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file="+p.keys.accounts, "--service-account-key-file="+p.keys.accounts,
		"--token-auth-file="+tokens, "--authorization-mode=RBAC", "--anonymous-auth=false")
	await(t, "kube-apiserver", func(ctx context.Context) error {
		select {
		case <-ended:
			t.Fatal("kube-apiserver ended")
		default:
		}
		return p.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// newUsers makes three users, and gives the file of their tokens.
func (p *plane) newUsers(t *testing.T) string {
	t.Helper()
	root, controllers, installer := rand.Text(), rand.Text(), rand.Text()
	p.root, p.installer = p.user(t, "root", root), p.user(t, "installer", installer)
	p.user(t, "controllers", controllers)
	p.client = kubernetes.NewForConfigOrDie(&rest.Config{
		Host: p.url, BearerToken: root, TLSClientConfig: rest.TLSClientConfig{CAFile: p.keys.cert}, QPS: -1,
	})
	file := filepath.Join(p.dir, "tokens.csv")
	write(t, file, fmt.Sprintf("%s,root,1,system:masters\n%s,system:kube-controller-manager,2\n%s,installer,3\n", root, controllers, installer))
	return file
}

// startControllers starts those that make pods of Deployments, bind claims, scale, and clear up after what was deleted.
func (p *plane) startControllers(t *testing.T) {
	t.Helper()
	config := p.kubeconfig("controllers")
	run(t, filepath.Join(p.bin, "kube-controller-manager"), filepath.Join(p.dir, "kube-controller-manager.log"),
		"--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1", "--secure-port=0", "--leader-elect=false",
		"--use-service-account-credentials",
		"--service-account-private-key-file="+p.keys.accounts, "--root-ca-file="+p.keys.cert,
		"--pv-recycler-pod-template-filepath-hostpath=", "--controllers=*")
}

// furnish gives the cluster what any has: kinds that are not the server's own, classes and rights.
func (p *plane) furnish(t *testing.T) {
	t.Helper()
	for _, folder := range filepath.SplitList(os.Getenv("DEWPOINT_CLUSTER_CRDS")) {
		p.root.must(t, "", "kubectl", "create", "-f", folder)
	}
	p.root.must(t, "", "kubectl", "wait", "--for=condition=Established", "--timeout=1m", "customresourcedefinitions", "--all")
	p.root.must(t, "", "kubectl", "create", "-f", "testdata/cluster.yaml")
}
