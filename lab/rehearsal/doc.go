// Package rehearsal runs what the Helm chart renders for production: its tests start the rendered containers as processes, over a
// real Redis Cluster, behind a balancer that follows the readiness probe, and roll them under load.
package rehearsal
