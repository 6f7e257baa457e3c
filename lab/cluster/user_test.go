package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// user is a user with a token, kubectl and helm.
type user struct{ bin, kubeconfig, home string }

func (p *plane) kubeconfig(name string) string { return filepath.Join(p.dir, name+".kubeconfig") }

func (p *plane) user(t *testing.T, name, token string) user {
	t.Helper()
	u := user{bin: p.bin, kubeconfig: p.kubeconfig(name), home: filepath.Join(p.dir, name)}
	write(t, u.kubeconfig, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: rehearsal, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: %[3]s, user: {token: %[4]q}}]
contexts: [{name: rehearsal, context: {cluster: rehearsal, user: %[3]s}}]
current-context: rehearsal
`, p.url, p.keys.cert, name, token))
	return u
}

// command is a program with this user's files and nothing of the machine's own.
func (u user) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.Env = []string{"PATH=" + u.bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + u.home, "KUBECONFIG=" + u.kubeconfig}
	return c
}

// output runs a command and gives what it wrote to standard output and to standard error.
func output(c *exec.Cmd, stdin string) (out, beside string, err error) {
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err = c.Run()
	return stdout.String(), stderr.String(), err
}

// harmless is what helm itself writes to standard error: client-go logs that helm, which has seen all it waited for, ended a watch; and a
// rollback finds the claim that an upgrade has kept.
var harmless = regexp.MustCompile(`(?m)^E\d{4} .*"Unexpected error when reading response body" err="context canceled"\n` +
	`|^level=WARN msg="resource exists on cluster but not in original release.*" .*kind=PersistentVolumeClaim\n`)

// must runs a program that has to succeed, and to write nothing to standard error: what the API server warns of is written there.
func (u user) must(t *testing.T, stdin, program string, args ...string) string {
	t.Helper()
	out, beside, err := output(u.command(filepath.Join(u.bin, program), args...), stdin)
	if beside = harmless.ReplaceAllString(beside, ""); err != nil || beside != "" {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, beside, out)
	}
	return out
}

// mustNot runs a program, a control, that has to complain of this.
func (u user) mustNot(t *testing.T, complaint, stdin, program string, args ...string) {
	t.Helper()
	out, beside, err := output(u.command(filepath.Join(u.bin, program), args...), stdin)
	if !strings.Contains(beside, complaint) {
		t.Errorf("%s %s does not complain of %q: %v\n%s%s", program, strings.Join(args, " "), complaint, err, beside, out)
	}
}
