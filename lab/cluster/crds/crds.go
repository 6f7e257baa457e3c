// Package crds pins the modules that bring the custom resources which the chart may render: their definitions are read from
// the modules' own files. It is a module of its own, so that neither decides what Kubernetes is built with.
package crds

import (
	_ "github.com/prometheus-operator/prometheus-operator/example" // in example/prometheus-operator-crd
	_ "sigs.k8s.io/gateway-api/pkg/consts"                         // in config/crd/standard
)
