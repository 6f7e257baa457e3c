package agents

import (
	"slices"
	"strings"
)

// browserTools are parts of the names of tools whose results are pages or screenshots. A tool is a browser tool if its
// name, in lower case and without hyphens, underscores and dots, contains one of them, or is one of browserExact.
//
//	browse                OpenHands browse, browse_interactive; browser_navigate, browser_use and the like
//	playwright, puppeteer, selenium, chromedevtools, webdriver   MCP servers that drive a browser
//	navigatepage, gotourl, openurl, visitpage, visiturl, visitwebpage   single actions of such servers
//	webfetch, fetchurl, fetchweb, fetchpage, urlfetch, readurl, webpage, firecrawl   pages as text
//	computeruse, screenshot   screens
var browserTools = [...]string{"brows", "playwright", "puppeteer", "selenium", "chromedevtools", "webdriver", "navigatepage",
	"gotourl", "openurl", "visitpage", "visiturl", "webfetch", "fetchurl", "fetchweb", "fetchpage", "urlfetch", "readurl", "webpage",
	"firecrawl", "computeruse", "screenshot"}

// browserExact are complete names of browser tools, without the name of a server before them (mcp__web__fetch, web.fetch).
var browserExact = [...]string{"fetch", "computer", "visit"}

// Browses reports whether a tool is a browser tool.
func Browses(tool string) bool {
	tool = strings.ToLower(tool)
	last := tool[strings.LastIndexAny(tool, ".:/")+1:]
	if at := strings.LastIndex(last, "__"); at >= 0 {
		last = last[at+2:]
	}
	plain := strings.NewReplacer("_", "", "-", "", ".", "").Replace(tool)
	return slices.Contains(browserExact[:], last) ||
		slices.ContainsFunc(browserTools[:], func(part string) bool { return strings.Contains(plain, part) })
}

// InjectedTags returns the elements that agents inject into user messages: reminders, environments, output of commands.
func InjectedTags() []string {
	return []string{
		"system-reminder", "environment_context", "session_context", "env", "local-command-caveat", "local-command-stdout", "bash-stdout",
		"bash-stderr", "command-message", "INSTRUCTIONS", "user_instructions", "recommended_plugins", "turn_aborted", "model_switch",
		"subagent_notification",
	}
}

// ReplacedNotes returns the elements that begin system messages of which each replaces the one before, such as Claude Code's count of the
// remaining tokens, which it adds at each step.
func ReplacedNotes() []string { return []string{"total_tokens"} }

// InjectedHeading begins the line that Codex writes above a project's instructions.
const InjectedHeading = "# AGENTS.md instructions for "
