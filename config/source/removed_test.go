package source

import (
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// TestRemovedKeysAreReported: each key of earlier builds is reported with what to do instead, next to all other problems, wherever it is set.
func TestRemovedKeysAreReported(t *testing.T) {
	const (
		warm = ": was removed, because it saved at most 1% and made short runs more expensive: " +
			"remove it; with trigger: economics, a prompt that the provider's cache has lost is condensed"
		repeats   = ": was removed, because agents detect their own loops: remove it; session_budget bounds what a session may spend"
		noProgram = ": was removed, because Dewpoint no longer starts programs: "
		condenser = noProgram + "run it as an HTTP service, and set url"
		server    = noProgram + "run the server with streamable HTTP, and set url"
		variables = noProgram + "set these variables where the server runs, and set url"
	)
	_, err := Load(Input{File: "testdata/removed.yaml", Env: []string{
		"A=a", "DEWPOINT_KEEP_WARM=true", "DEWPOINT_TENANTS_0_KEEP_WARM_USD=3", "DEWPOINT_LIMITS_TENANT_REPEATED_CALLS_AFTER=3",
		"DEWPOINT_MEMORY_MCP_ENV_TOKEN=x", "DEWPOINT_CONDENSER_CONDENSERS_0_COMMAND=a,b",
	}})
	wantProblems(t, err,
		"DEWPOINT_CONDENSER_CONDENSERS_0_COMMAND"+condenser,
		"DEWPOINT_KEEP_WARM"+warm,
		"DEWPOINT_LIMITS_TENANT_REPEATED_CALLS_AFTER"+repeats,
		"DEWPOINT_MEMORY_MCP_ENV_TOKEN"+variables,
		"DEWPOINT_TENANTS_0_KEEP_WARM_USD"+warm,
		"keep_warm"+warm+" (line 2)",
		"keep_warm_usd"+warm+" (line 3)",
		"limits.tenant.repeated_calls"+repeats+" (line 4)",
		"condenser.condensers[0].command"+condenser+" (line 8)",
		"condenser.condensers[1].command"+condenser+" (line 9)",
		"tenants[0].keep_warm"+warm+" (line 13)",
		"tenants[0].keep_warm_usd"+warm+" (line 14)",
		"tenants[0].limits.repeated_calls"+repeats+" (line 15)",
		"tenants[0].memory.mcp.command"+server+" (line 16)",
		"tenants[0].memory.mcp.env"+variables+" (line 16)",
		"condenser.condensers[0].url: is missing: write the address of the service, such as http://127.0.0.1:9000/condense (line 8)")
}

// TestRemovedKeysStayRemoved: no removed key is in use again, since the error about its removal would make it unusable.
func TestRemovedKeysStayRemoved(t *testing.T) {
	for _, key := range removedKeys() {
		if slices.Contains(syntax.KeysOf(key.section), key.name) {
			t.Errorf("%v has %s, which is listed as removed", key.section, key.name)
		}
	}
}
