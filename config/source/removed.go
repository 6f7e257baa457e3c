package source

import (
	"reflect"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// removedKey is a key that earlier builds had.
type removedKey struct {
	section reflect.Type
	name    string
	message string // that it was removed and why, a colon, and what to do
}

func removedKeys() []removedKey {
	all, tenant, limits := reflect.TypeFor[config.Config](), reflect.TypeFor[config.Tenant](), reflect.TypeFor[limit.Tenant]()
	condenser, mcp := reflect.TypeFor[config.Condenser](), reflect.TypeFor[config.MCP]()
	const warm = "was removed, because it saved at most 1% and made short runs more expensive: " +
		"remove it; with trigger: economics, a prompt that the provider's cache has lost is condensed"
	return []removedKey{
		{all, "keep_warm", warm}, {all, "keep_warm_usd", warm},
		{tenant, "keep_warm", warm}, {tenant, "keep_warm_usd", warm},
		{limits, "repeated_calls", "was removed, because agents detect their own loops: remove it; session_budget bounds what a session may spend"},
		{condenser, "command", "was removed, because Dewpoint no longer starts programs: run it as an HTTP service, and set url"},
		{mcp, "command", "was removed, because Dewpoint no longer starts programs: run the server with streamable HTTP, and set url"},
		{mcp, "env", "was removed, because Dewpoint no longer starts programs: set these variables where the server runs, and set url"},
	}
}

// removed returns the message about a key that a section had in earlier builds, or "" if it had no such key.
func removed(section reflect.Type, name string) string {
	for _, key := range removedKeys() {
		if key.section == section && key.name == name {
			return key.message
		}
	}
	return ""
}
