// Package cluster installs the Helm chart in deploy/helm, by helm itself, into a control plane that is built from the modules
// of Kubernetes: etcd, an API server and the controllers. What is missing of a cluster are nodes: no pod is scheduled or run, and
// the test says of each admitted pod that it is ready.
//
// It is a module of its own: nothing else needs Kubernetes whole. scripts/cluster.sh builds the programs and runs the test.
package cluster
