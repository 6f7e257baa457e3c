#!/bin/sh
# The install rehearsal in a cluster: builds an API server, its controllers, kubectl and helm from their Go modules, and runs the test
# in lab/cluster, which installs the chart there. The first build takes minutes and several GB of memory. Everything runs on loopback in a
# temporary folder; the test stops every process it starts.
set -eu
cd "$(dirname "$0")/../lab/cluster"
go=${GO:-go}
jobs=${JOBS:-2}
bin=$(mktemp -d)
out=$bin/out
trap 'rm -rf "$bin"' EXIT
trap 'exit 1' INT TERM

module() { $go list -m -f "$1" "$2"; }
version=$(module '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
stamp=k8s.io/component-base/version
ldflags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%%.*}"

began=$(date +%s)
for program in kube-apiserver kube-controller-manager kubectl; do
	$go build -p "$jobs" -trimpath -ldflags "$ldflags" -o "$bin/" "k8s.io/kubernetes/cmd/$program"
done
(cd ../../deploy/charttest && $go build -p "$jobs" -trimpath -o "$bin/" helm.sh/helm/v4/cmd/helm)
echo "cluster: Kubernetes $version, kubectl and helm built in $(($(date +%s) - began)) s"

cd crds
$go mod download
crds=$(module '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/standard
crds=$crds:$(module '{{.Dir}}' github.com/prometheus-operator/prometheus-operator)/example/prometheus-operator-crd
cd ..

$go vet ./...
../../bin/tools/golangci-lint run ./...
if ! DEWPOINT_CLUSTER_BIN=$bin DEWPOINT_CLUSTER_CRDS=$crds \
	$go test -count=1 -parallel 3 -timeout 20m -v -run '^TestCluster$' . >"$out" 2>&1; then
	cat "$out"
	exit 1
fi
sed -n 's/^ *[a-z_]*_test.go:[0-9]*: /cluster: /p; /^ok/p' "$out"
