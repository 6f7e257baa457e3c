package rehearsal

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

const (
	chartModule = "../../deploy/charttest" // has helm as a tool
	production  = "../helm/ci/production.yaml"
	namespace   = "agents"
)

// object is what a rehearsal needs of an object of Kubernetes; decoding takes no notice of the case of letters.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string // of a ConfigMap
	Spec     deployment
}

type deployment struct {
	MinReadySeconds int
	Strategy        struct {
		Type          string
		RollingUpdate *struct{ MaxSurge, MaxUnavailable any }
	}
	Template struct{ Spec pod }
}

type pod struct {
	TerminationGracePeriodSeconds int64
	Volumes                       []volume
	Containers                    []container
}

type volume struct {
	Name      string
	ConfigMap *struct{ Name string }
}

type container struct {
	Command, Args                               []string
	Env                                         []variable
	EnvFrom                                     []any
	VolumeMounts                                []struct{ Name, MountPath string }
	StartupProbe, ReadinessProbe, LivenessProbe *probe
}

type variable struct {
	Name, Value string
	ValueFrom   *source
}

// source is where a variable's value comes from.
type source struct {
	SecretKeyRef, ConfigMapKeyRef *struct{ Name, Key string }
	FieldRef                      *struct{ FieldPath string }
}

type probe struct {
	HTTPGet                                                           struct{ Path string }
	PeriodSeconds, TimeoutSeconds, SuccessThreshold, FailureThreshold int
}

// rendered is what a chart renders to.
type rendered []object

// render renders the production set by helm, with values over it.
func render(t *testing.T, over string) rendered {
	t.Helper()
	file := filepath.Join(t.TempDir(), "over.yaml")
	must(t, os.WriteFile(file, []byte(over), 0o600))
	command := exec.Command("go", "tool", "helm", "template", "try", "../helm", "--namespace", namespace, "--kube-version", "v1.31.0",
		"--values", production, "--values", file)
	command.Dir = chartModule
	var errs strings.Builder
	command.Stderr = &errs
	manifest, err := command.Output()
	if err != nil {
		t.Fatalf("helm: %v\n%s", err, errs.String())
	}
	var all rendered
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		text, err := yaml.YAMLToJSON([]byte(document))
		must(t, err)
		var kind struct{ Kind string }
		must(t, json.Unmarshal(text, &kind))
		if kind.Kind != "Deployment" && kind.Kind != "ConfigMap" {
			continue
		}
		var o object
		if err := json.Unmarshal(text, &o); err != nil {
			t.Fatalf("%v, in:\n%s", err, document)
		}
		all = append(all, o)
	}
	return all
}

func (r rendered) one(t *testing.T, kind, name string) object {
	t.Helper()
	for _, o := range r {
		if o.Kind == kind && (name == "" || o.Metadata.Name == name) {
			return o
		}
	}
	t.Fatalf("no %s %s was rendered", kind, name)
	return object{}
}

func (r rendered) deployment(t *testing.T) object { return r.one(t, "Deployment", "") }

func (r rendered) pod(t *testing.T) pod { return r.deployment(t).Spec.Template.Spec }

func (r rendered) container(t *testing.T) container { return r.pod(t).Containers[0] }

// delay is how long the mounted configuration has a pod serve on after it was told to end.
func (r rendered) delay(t *testing.T) time.Duration {
	t.Helper()
	var c struct{ Shutdown struct{ Delay string } }
	must(t, yaml.Unmarshal([]byte(r.one(t, "ConfigMap", r.deployment(t).Metadata.Name).Data["dewpoint.yaml"]), &c))
	d, err := time.ParseDuration(c.Shutdown.Delay)
	must(t, err)
	return d
}

// replicasOf gives how many of so many replicas a number or a percentage is.
func replicasOf(t *testing.T, v any, of int, up bool) int {
	t.Helper()
	text := fmt.Sprint(v)
	share, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(share)
	must(t, err)
	switch {
	case !percent:
		return n
	case up:
		return (n*of + 99) / 100
	}
	return n * of / 100
}
