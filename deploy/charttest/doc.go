// Package charttest holds the Helm chart in deploy/helm to what it promises. It renders the chart as helm does, with every
// value set in ci, and reads the result with the types of Kubernetes and with Dewpoint's own configuration loader.
//
// It is a module of its own: Helm and Kubernetes are heavy, and Dewpoint needs neither.
package charttest
