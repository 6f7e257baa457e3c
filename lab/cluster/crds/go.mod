module github.com/dewpoint-proxy/dewpoint/lab/cluster/crds

go 1.26.0

require (
	github.com/prometheus-operator/prometheus-operator v0.94.1
	sigs.k8s.io/gateway-api v1.6.3
)
