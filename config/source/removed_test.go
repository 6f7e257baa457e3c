package source

import (
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// TestRemovedKeysAreReported: each key of earlier builds is reported with what to do instead, next to all other problems, wherever it is set.
func TestRemovedKeysAreReported(t *testing.T) {
	const warm = ": was removed, because it saved at most 1% and made short runs more expensive: " +
		"remove it; with trigger: economics, a prompt that the provider's cache has lost is condensed"
	const repeats = ": was removed, because agents detect their own loops: remove it; session_budget bounds what a session may spend"
	text := `
keep_warm: true
keep_warm_usd: 2
listne: x
limits: {tenant: {repeated_calls: {after: 5, then: tell}}}
tenants: [{name: a, api_keys: [{env: A}], keep_warm: true, keep_warm_usd: 2, limits: {repeated_calls: {then: report}}}]
`
	_, err := buildText(".yaml", text, "A=a", "DEWPOINT_KEEP_WARM=true", "DEWPOINT_TENANTS_0_KEEP_WARM_USD=3",
		"DEWPOINT_LIMITS_TENANT_REPEATED_CALLS_AFTER=3")
	problems := problemsOf(err)
	var got []string
	for _, p := range problems {
		if !strings.Contains(p.Message, "is not a known key") {
			got = append(got, p.Error())
		}
	}
	if want := []string{
		"DEWPOINT_KEEP_WARM" + warm, "DEWPOINT_LIMITS_TENANT_REPEATED_CALLS_AFTER" + repeats, "DEWPOINT_TENANTS_0_KEEP_WARM_USD" + warm,
		"keep_warm" + warm + " (line 2)", "keep_warm_usd" + warm + " (line 3)",
		"limits.tenant.repeated_calls" + repeats + " (line 5)",
		"tenants[0].keep_warm" + warm + " (line 6)", "tenants[0].keep_warm_usd" + warm + " (line 6)",
		"tenants[0].limits.repeated_calls" + repeats + " (line 6)",
	}; !slices.Equal(got, want) || len(problems) != len(want)+1 {
		t.Errorf("problems\n\t%v\nwant\n\t%s\nand listne", err, strings.Join(want, "\n\t"))
	}
}

// TestRemovedKeysStayRemoved: no removed key is in use again, which its error would hide.
func TestRemovedKeysStayRemoved(t *testing.T) {
	for _, key := range removedKeys() {
		if slices.Contains(syntax.KeysOf(key.section), key.name) {
			t.Errorf("%v has %s, which is listed as removed", key.section, key.name)
		}
	}
}
