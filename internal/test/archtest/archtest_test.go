// Package archtest tests the architecture: which package may import which, and claims of the documentation.
package archtest

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dewpoint-proxy/dewpoint/"

// labDir is the directory of measurements. They may import every package of the module and of the standard library; nothing
// imports them.
const labDir = "lab/"

// allowedImports lists the packages of the module, and for each the packages of the module that it may import. Imports point one way.
var allowedImports = map[string][]string{
	"session":                           {"internal/lru"},
	"session/seal":                      {},
	"session/internal/codec":            {"session", "session/seal"},
	"session/boltstore":                 {"session", "session/seal", "session/internal/codec", "internal/serve/platform"},
	"session/redisstore/internal/nodes": {},
	"session/redisstore":                {"session", "session/store", "session/redisstore/internal/nodes"},
	"session/store":                     {"session"},
	"session/store/memory":              {"session", "session/store"},
	"session/store/storetest":           {"session", "session/store"},
	"session/records":                   {"internal/lru", "session", "session/seal", "session/internal/codec", "session/store"},
	"session/sessiontest":               {"session", "session/seal", "internal/test/process", "internal/test/property"},
	"tokenize":                          {"session"},
	"condense":                          {"internal/lru", "internal/known/agents", "session", "condense/excerpt", "condense/ground", "condense/record", "condense/tidy"},
	"condense/catalogue":                {"condense", "internal/secret"},
	"condense/recall":                   {"session", "condense/excerpt"},
	"condense/excerpt":                  {"session", "internal/rawjson"},
	"condense/ground":                   {"condense/excerpt", "condense/record", "internal/rawjson"},
	"condense/record":                   {"internal/known/agents", "session"},
	"condense/tidy":                     {"internal/rawjson"},
	"condense/summariser":               {"internal/lru", "internal/known/agents", "internal/known/overflow", "session", "condense", "dialect", "dialect/protocols", "dialect/split"},
	"condense/condensetest":             {"session", "condense", "condense/catalogue", "condense/tidy"},
	"config/internal/syntax":            {},
	"internal/limit":                    {},
	"config":                            {"condense/catalogue", "config/internal/syntax", "dialect/protocols", "internal/hosts", "internal/limit", "internal/known/model", "internal/known/provider", "internal/secret"},
	"config/source":                     {"condense/catalogue", "config", "config/internal/syntax", "internal/limit", "internal/known/model", "internal/yamlfile"},
	"internal/yamlfile":                 {},
	"internal/rawjson":                  {},
	"internal/serve/served":             {"internal/lru"},
	"dialect":                           {"session", "internal/rawjson"},
	"dialect/split":                     {"session", "dialect", "internal/known/agents", "internal/rawjson"},
	"dialect/dialecttest":               {"session", "dialect"},
	"dialect/protocols":                 {"dialect", "dialect/chat", "dialect/gemini", "dialect/messages", "dialect/responses", "dialect/split"},
	"dialect/assemble":                  {"dialect", "dialect/split", "session", "internal/rawjson"},
	"dialect/chat":                      {"internal/known/agents", "session", "dialect", "dialect/assemble", "dialect/split", "internal/rawjson"},
	"dialect/messages":                  {"session", "dialect", "dialect/assemble", "dialect/split", "internal/rawjson"},
	"dialect/gemini":                    {"session", "dialect", "dialect/assemble", "dialect/split", "internal/rawjson"},
	"dialect/responses":                 {"session", "dialect", "dialect/assemble", "dialect/split", "internal/known/agents", "internal/rawjson"},
	"internal/known/overflow":           {"internal/rawjson"},
	"engine/summaries":                  {"internal/lru", "session"},
	"engine":                            {"engine/summaries", "engine/lessons", "internal/lru", "internal/limit", "internal/known/agents", "internal/known/model", "session", "session/seal", "condense", "condense/excerpt", "condense/recall", "condense/record", "dialect", "internal/known/overflow", "internal/knowledge"},
	"internal/knowledge":                {"internal/serve/watch", "internal/yamlfile"},
	"internal/serve/watch":              {},
	"internal/serve/platform":           {},
	"internal/serve/terminal":           {"internal/serve/platform"},
	"internal/setup":                    {"internal/known/agents", "internal/serve/terminal", "internal/yamlfile"},
	"internal/doctor":                   {"condense", "config", "internal/serve/app", "internal/serve/health", "internal/serve/terminal", "internal/setup", "session"},
	"internal/serve/console":            {"internal/account", "internal/serve/journal", "condense/catalogue", "config", "engine", "internal/limit", "internal/serve/observe", "internal/serve/terminal", "proxy", "session"},
	"internal/hosts":                    {},
	"internal/serve/dial":               {"internal/hosts"},
	"internal/serve/findings":           {"session", "condense/record"},
	"proxy/listen":                      {"internal/serve/platform"},
	"proxy/plug":                        {"internal/rawjson"},
	"proxy":                             {"proxy/plug", "engine/summaries", "internal/serve/dial", "engine/lessons", "internal/lru", "internal/known/agents", "proxy/listen", "session", "condense", "dialect", "engine", "internal/limit", "internal/known/model", "internal/known/overflow", "internal/known/provider", "internal/serve/platform", "internal/rawjson"},
	"internal/serve/observe":            {"internal/lru", "internal/serve/holdout", "internal/serve/findings", "internal/limit", "session", "condense", "dialect", "engine", "proxy", "internal/known/model", "internal/serve/otlp", "internal/account"},
	"internal/known/model":              {},
	"internal/known/provider":           {},
	"internal/secret":                   {},
	"internal/known/agents":             {},
	"internal/serve/holdout":            {"session"},
	"internal/account":                  {"session"},
	"internal/serve/journal":            {"internal/account", "internal/lru", "internal/limit", "internal/known/model", "proxy", "session"},
	"admin/ui":                          {"internal/account", "session", "condense/excerpt", "condense/record", "internal/figures"},
	"admin":                             {"admin/ui", "condense/record", "internal/lru", "internal/account", "internal/serve/holdout", "session", "engine", "internal/limit"},
	"internal/serve/tools":              {"engine", "proxy", "session"},
	"internal/serve/app":                {"internal/serve/tools", "proxy/plug", "internal/serve/journal", "internal/figures", "internal/serve/dial", "internal/hosts", "internal/serve/holdout", "internal/serve/served", "internal/known/agents", "admin", "session", "session/seal", "session/boltstore", "session/records", "session/redisstore", "tokenize", "condense", "condense/catalogue", "condense/summariser", "config", "engine", "proxy", "proxy/listen", "dialect", "dialect/chat", "dialect/messages", "dialect/protocols", "dialect/responses", "dialect/split", "internal/serve/health", "internal/limit", "internal/known/model", "internal/known/provider", "internal/serve/observe", "internal/knowledge", "internal/serve/watch", "internal/serve/findings", "internal/serve/otlp", "internal/serve/platform", "internal/serve/runs", "internal/account"},
	"internal/serve/health":             {},
	"internal/launch":                   {"internal/known/agents", "internal/serve/platform"},
	"internal/serve/runs":               {"internal/account", "internal/serve/journal", "internal/limit", "proxy", "session"},
	"internal/serve/otlp":               {},
	"internal/serve/login":              {},
	"internal/test/fakeupstream":        {"internal/lru"},
	"internal/replay":                   {"internal/account", "internal/figures", "internal/replay/missing", "condense/catalogue", "condense/record", "config", "dialect", "dialect/assemble", "dialect/chat", "dialect/gemini", "dialect/messages", "dialect/responses", "dialect/split", "internal/serve/app", "internal/serve/terminal", "internal/known/model", "session", "tokenize"},
	"internal/replay/missing":           {},
	"internal/replay/logs":              {"internal/replay"},
	"internal/replay/ask":               {"internal/known/agents", "internal/replay", "session"},
	"internal/test/judge":               {"session", "condense", "condense/record", "condense/tidy", "config", "internal/test/fakeupstream", "internal/replay", "dialect", "dialect/assemble", "dialect/chat", "dialect/gemini", "dialect/messages", "dialect/responses", "dialect/split", "session/boltstore", "tokenize"},
	"internal/demo":                     {"config", "internal/replay"},
	"cmd/proxy":                         {"internal/command"},
	"cmd/dewpoint":                      {"internal/command"},
	"internal/command":                  {"internal/account", "internal/capacity", "internal/figures", "config", "config/source", "internal/serve/app", "internal/serve/health", "internal/doctor", "internal/setup", "internal/serve/console", "internal/serve/observe", "internal/serve/platform", "internal/serve/terminal", "internal/demo", "internal/replay", "tokenize", "internal/known/agents", "internal/known/provider", "internal/launch", "internal/serve/runs", "internal/replay/logs", "internal/replay/ask", "internal/serve/login"},
	"deploy":                            {},
	"internal/test/archtest":            {},
	"internal/test/lineartest":          {},
	"internal/test/process":             {},
	"engine/lessons":                    {"internal/lru"},
	"internal/lru":                      {},
	"internal/figures":                  {},
	"internal/capacity":                 {},
	"internal/test/property":            {},
	"internal/test/quick":               {},
	"internal/test/e2e":                 {"internal/test/process"},
}

// dependencyRules lists which packages may import a dependency, and why no others may.
var dependencyRules = []struct {
	dependency, reason string
	packages           []string
}{
	{"github.com/valyala/fasthttp", "one package knows the server; the benchmark uses it for a bare proxy to compare with, a client and an upstream", []string{"proxy", "proxy/listen", labDir + "bench"}},
	{"github.com/redis/go-redis", "one package knows Redis", []string{"session/redisstore", "session/redisstore/internal/nodes"}},
	{"go.etcd.io/bbolt", "one package knows the embedded database", []string{"session/boltstore"}},
	{"google.golang.org/protobuf", "one package encodes records, and another the spans of OTLP", []string{"session/internal/codec", "internal/serve/otlp"}},
	{"github.com/pkoukk", "one package knows the vocabularies", []string{"tokenize"}},
	{"github.com/goccy/go-yaml", "one package reads files of YAML, within limits, and another writes the configuration", []string{"config", "internal/yamlfile"}},
	{"github.com/coregx/ahocorasick", "one package looks for triggers", []string{"internal/knowledge"}},
	{"github.com/pelletier/go-toml", "one package reads configuration files, and another the table of real clients", []string{"config/source", labDir + "clients"}},
	{"github.com/sashabaranov/go-openai", "its structs lose fields, so only our own calls use it", []string{"dialect/chat"}},
	{"github.com/modelcontextprotocol/go-sdk", "one package calls MCP servers, and another is one", []string{"internal/serve/findings", "internal/serve/tools"}},
	{"github.com/hashicorp/golang-lru", "generic types with many methods are compiled again by each package that sees them", []string{"internal/lru"}},
	{"golang.org/x/term", "one package knows terminals", []string{"internal/serve/terminal"}},
	{"golang.org/x/text", "one package normalises text that only looks like ASCII", []string{"condense/record"}},
	{"go.uber.org/zap", "packages below the proxy return errors instead of logging", []string{"proxy", "internal/serve/observe", "internal/serve/app", "internal/serve/console", "internal/command", "internal/replay"}},
	{"github.com/prometheus", "one package exports metrics", []string{"internal/serve/observe"}},
	{"go.opentelemetry.io", "one package records spans, and another exports them", []string{"internal/serve/observe", "internal/serve/otlp"}},
	{"net/http", "the core is independent of HTTP", []string{
		"proxy", "admin", "condense/summariser", "internal/serve/app", "internal/serve/health", "internal/serve/observe", "internal/serve/otlp", "internal/test/fakeupstream",
		"internal/test/judge", "internal/replay", "internal/replay/ask", "internal/serve/console", "internal/setup", "internal/doctor", "internal/serve/served", "internal/serve/findings", "internal/serve/dial", "internal/command", "internal/serve/runs", "internal/serve/tools",
	}},
	{"encoding/json", "a client's JSON is never decoded and re-encoded", []string{
		"internal/replay/ask", "engine", "proxy", "admin", "admin/ui", "config", "condense", "condense/summariser", "condense/condensetest", "dialect/dialecttest", "condense/tidy", "internal/test/fakeupstream", "internal/test/judge", "internal/replay",
		"internal/serve/health", "internal/serve/served", "internal/serve/findings", "internal/setup", "internal/doctor", "dialect/assemble", "internal/serve/runs",
		"internal/replay/logs", "internal/demo", "internal/test/process", "session/sessiontest", "session/boltstore", "internal/command",
	}},
	{"os/exec", "the proxy starts no programs; only commands and tests do", []string{"internal/command", "internal/launch", "session/sessiontest", "internal/test/process"}},
	{"testing", "tests stay out of the binary", []string{"session/sessiontest", "session/store/storetest", "condense/condensetest", "internal/test/lineartest", "internal/test/property", "internal/test/quick"}},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

// goList runs 'go list' in the root of the module. It lists the folders first: go test does not see what another program reads, and would
// return a cached result after a file was changed.
func goList(t *testing.T, args ...string) string {
	t.Helper()
	const root = "../../.."
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if name := entry.Name(); err == nil && path != root && entry.IsDir() && (name == "bin" || name[0] == '.') {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", append([]string{"list"}, args...)...)
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func list(t *testing.T) []pkg {
	t.Helper()
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(goList(t, "-json=ImportPath,Imports", "./..."))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(name, labDir) {
			continue
		}
		allowed, known := allowedImports[name]
		if !known {
			t.Errorf("%s: a new package: add it to allowedImports", name)
			continue
		}
		for _, imported := range p.Imports {
			if inner, ours := strings.CutPrefix(imported, module); ours && !slices.Contains(allowed, inner) {
				t.Errorf("%s must not import %s", name, inner)
			}
		}
	}
}

// binary returns the packages of which the program is built.
func binary(t *testing.T) []string {
	t.Helper()
	return strings.Fields(goList(t, "-deps", "./cmd/proxy"))
}

// TestBinaryHasNoGRPC: gRPC would make the binary 50% larger, and nothing uses it.
func TestBinaryHasNoGRPC(t *testing.T) {
	if slices.ContainsFunc(binary(t), func(p string) bool { return strings.HasPrefix(p, "google.golang.org/grpc") }) {
		t.Error("the binary includes gRPC: find out why with go mod why")
	}
}

// TestBinaryHasNoTestSupport: what only tests and measurements use is not shipped.
func TestBinaryHasNoTestSupport(t *testing.T) {
	packages := binary(t)
	if !slices.Contains(packages, module+"proxy") {
		t.Fatalf("%d packages, and not the proxy's", len(packages))
	}
	for _, support := range []string{
		module + "internal/test/fakeupstream", module + "internal/test/judge", module + "internal/test/process", module + "internal/test/e2e",
		module + "session/sessiontest", module + "session/store/storetest", module + "session/store/memory", module + "condense/condensetest", "testing", "net/http/httptest",
	} {
		if slices.Contains(packages, support) {
			t.Errorf("the binary includes %s", support)
		}
	}
}

func TestDependenciesHaveOneHome(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, rule := range dependencyRules {
			for _, imported := range p.Imports {
				if imported != rule.dependency && !strings.HasPrefix(imported, rule.dependency+"/") {
					continue
				}
				standard := !strings.Contains(rule.dependency, ".")
				if standard && strings.HasPrefix(name, labDir) {
					continue
				}
				if !slices.Contains(rule.packages, name) {
					t.Errorf("%s must not import %s: %s", name, imported, rule.reason)
				}
			}
		}
	}
}

// TestEngineKnowsNoRequest: the engine, including its tests, runs turns without connections, logs and metrics.
func TestEngineKnowsNoRequest(t *testing.T) {
	files, err := filepath.Glob("../../../engine/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range file.Imports {
			for _, edge := range []string{"valyala/fasthttp", "go.uber.org/zap", "prometheus", "opentelemetry", `"net/http`} {
				if strings.Contains(imported.Path.Value, edge) {
					t.Errorf("%s must not import %s", name, imported.Path.Value)
				}
			}
		}
	}
}
