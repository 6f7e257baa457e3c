package archtest

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// instruction is an instruction of a Dockerfile, with continued lines joined.
type instruction struct{ name, rest string }

// dockerfile returns the instructions before the first FROM, and those of each stage, starting with its FROM.
func dockerfile(t *testing.T) (stages [][]instruction) {
	t.Helper()
	text, err := os.ReadFile("../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	stages = make([][]instruction, 1)
	joined := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		part, continued := strings.CutSuffix(line, `\`)
		joined += part
		if continued {
			continue
		}
		name, rest, _ := strings.Cut(joined, " ")
		joined = ""
		if name == "FROM" {
			stages = append(stages, nil)
		}
		stages[len(stages)-1] = append(stages[len(stages)-1], instruction{name, strings.TrimSpace(rest)})
	}
	return stages
}

// all returns the arguments of all instructions of a stage with the given name.
func all(stage []instruction, name string) []string {
	var out []string
	for _, i := range stage {
		if i.name == name {
			out = append(out, i.rest)
		}
	}
	return out
}

func TestDockerfile(t *testing.T) {
	stages := dockerfile(t)
	if len(stages) != 3 {
		t.Fatalf("%d stages, want two", len(stages)-1)
	}
	build, image := stages[1], stages[2]
	is := func(stage []instruction, name string, want ...string) {
		t.Helper()
		if got := all(stage, name); !slices.Equal(got, want) {
			t.Errorf("%s %q, want %q", name, got, want)
		}
	}
	is(stages[0], "ARG", "GO_IMAGE=golang:1.26", "RUNTIME_IMAGE=scratch")
	is(build, "FROM", "--platform=$BUILDPLATFORM ${GO_IMAGE} AS build")
	compile := strings.Join(all(build, "RUN"), "\n")
	for _, word := range []string{"CGO_ENABLED=0", "GOOS=${TARGETOS", "GOARCH=${TARGETARCH}", "-trimpath", "-buildvcs=false", "internal/command.version=${VERSION}", "internal/command.revision=${REVISION}", "scripts/licences.sh /image/licences"} {
		if !strings.Contains(compile, word) {
			t.Errorf("%s is not in RUN", word)
		}
	}
	is(image, "FROM", "${RUNTIME_IMAGE}")
	is(image, "RUN") // the image has no shell
	is(image, "USER", "65532:65532")
	is(image, "EXPOSE", "8080 9090")
	is(image, "ENTRYPOINT", `["/dewpoint"]`)
	is(image, "VOLUME", `["/var/lib/dewpoint"]`)
	is(image, "CMD")
	is(image, "ADD")
	for _, from := range all(image, "COPY") {
		if !strings.HasPrefix(from, "--from=build ") {
			t.Errorf("COPY %s: not from the build", from)
		}
	}
	if labels := strings.Join(all(image, "LABEL"), " "); strings.Count(labels, "org.opencontainers.image.") < 7 {
		t.Errorf("labels %s", labels)
	}
}

// TestDockerfileHealthCheck: the health check needs no shell, and runs an existing command.
func TestDockerfileHealthCheck(t *testing.T) {
	stages := dockerfile(t)
	checks := all(stages[len(stages)-1], "HEALTHCHECK")
	if len(checks) != 1 {
		t.Fatalf("%d health checks", len(checks))
	}
	_, command, _ := strings.Cut(checks[0], "CMD ")
	var words []string
	if err := json.Unmarshal([]byte(command), &words); err != nil || !slices.Equal(words, []string{"/dewpoint", "health"}) {
		t.Errorf("%s: %q, %v", checks[0], words, err)
	}
}
