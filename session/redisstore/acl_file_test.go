package redisstore

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// ACLPassword is that of the users in docs/redis.md, in tests.
const ACLPassword = "correct-horse"

// aclLines reads the users that docs/redis.md tells to make, by what they are for.
func aclLines(t *testing.T) map[string]string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/redis.md")
	must(t, err)
	lines := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# (\w+).*\n(user dewpoint .*)$`).FindAllStringSubmatch(string(doc), -1) {
		lines[m[1]] = strings.Replace(m[2], ">PASSWORD", ">"+ACLPassword, 1)
	}
	return lines
}

// WithACL makes the options of a server that has the user which docs/redis.md has for that purpose, in a file.
func WithACL(t *testing.T, purpose string) []string {
	t.Helper()
	path := t.TempDir() + "/users.acl"
	must(t, os.WriteFile(path, []byte("user default on nopass ~* &* +@all\n"+aclLines(t)[purpose]+"\n"), 0o600))
	return []string{"--aclfile", path}
}
