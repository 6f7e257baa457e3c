package redisstore

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// ACLPassword is the password that tests give the users in docs/redis.md.
const ACLPassword = "correct-horse"

// aclLines reads the ACL lines in docs/redis.md, by their purpose.
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

// WithACL returns the options of a server with an ACL file that has the user for that purpose in docs/redis.md.
func WithACL(t *testing.T, purpose string) []string {
	t.Helper()
	path := t.TempDir() + "/users.acl"
	must(t, os.WriteFile(path, []byte("user default on nopass ~* &* +@all\n"+aclLines(t)[purpose]+"\n"), 0o600))
	return []string{"--aclfile", path}
}
