// Package charttest tests the Helm chart in deploy/helm. It renders the chart as helm does, with every value set in ci, and decodes the result
// with the types of Kubernetes and with Dewpoint's own configuration loader.
//
// It is a separate module, because Helm and Kubernetes are large dependencies that Dewpoint does not need.
package charttest
