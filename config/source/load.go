// Package source reads Dewpoint's settings from YAML, JSON and TOML files, the environment and command line flags. It is strict: it reports all
// unknown keys and wrong values at once, each with its line. It watches no files and logs nothing: the caller loads a new Config and replaces
// the old one.
package source

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// Bounds of a file, in bytes. A tenant's file is small because the parsers take a time that is quadratic in the keys of a section.
const maxFile, maxTenantFile = 1 << 20, 32 << 10

// Input is the sources of a configuration. Each overrides the ones before it: the defaults, the file, the environment, the flags.
type Input struct {
	// File is a .yaml, .yml, .json or .toml file. If it is empty, the variable DEWPOINT_CONFIG in Env may name one.
	//
	// In string values, ${NAME} is replaced by the variable NAME in Env, and $${ by ${.
	File string

	// Env is the environment in the form of os.Environ. DEWPOINT_UPSTREAM_BASE_URL overrides upstream.base_url, and so on for every key.
	// Lists of plain values are comma-separated; elements of other lists are numbered from 0, as in DEWPOINT_TENANTS_0_NAME. Names in llms,
	// models and per_model, and in tenants if those are a section or files, are spelled in upper case with underscores. A variable can add a
	// name to per_model only if it has no underscore: for gpt-4o, the file must have the name. It cannot add a tenant to a section or to
	// files. A DEWPOINT_ variable that names no key is a problem, except for those that Kubernetes sets for a service called dewpoint.
	Env []string

	// Flags are the values of command line flags by name, without dashes. A name is the path of a key, such as "listen" or "store.path", or
	// short for one: "upstream" for "upstream.base_url", "admin" for "admin.listen", "store" for "store.path".
	Flags map[string]string

	// Check finds further problems, in the files that a configuration names, and returns them as config.Problems. It may be nil.
	Check func(*config.Config) error

	// RefuseTenants makes problems in a file of tenants_dir concern only its tenant, see config.Refused. InForce has the last good versions of
	// such tenants; it may be nil.
	RefuseTenants bool
	InForce       *config.Config
}

// Load reads, merges and validates a configuration. The error is a config.Problems with all problems, except those of tenants that are refused
// instead. The Config that is returned with an
// error has the settings that could be read, or is nil. It must not be put in force, but tells a process that waits for a valid one where to
// listen and which files to watch.
func Load(src Input) (*config.Config, error) {
	p := &problems{}
	env := environment(src.Env)
	file := cmp.Or(src.File, env[envConfig])
	root := document{problems: p, name: file}.read(file, maxFile)
	if root == nil {
		return nil, p.list.Err()
	}
	return checked(build(root, src, env, p), src, p)
}

// checked validates a configuration and, if it has no problems, adds its warnings.
func checked(cfg *config.Config, src Input, p *problems) (*config.Config, error) {
	p.merge(cfg.Validate(), within)
	p.check(cfg, src)
	err := p.list.Err()
	if src.RefuseTenants {
		err = p.refuseTenants(cfg, src)
	}
	if err != nil {
		return cfg, err
	}
	cfg.Warnings = append(cfg.Warnings, p.located(cfg.FindWarnings())...)
	return cfg, nil
}

// build makes the configuration from the tree of its file and the other sources.
func build(root *node, src Input, env map[string]string, p *problems) *config.Config {
	foreign := &openHands{problems: p}
	foreign.sections(root)
	expand(root, "", env, p)
	foreign.llms(root)
	foreign.condenser(root)
	readTenants(root, src, env, p)
	overlayEnv(root, env, p)
	overlayFlags(root, src.Flags, p)

	cfg := config.Default()
	decoder{problems: p}.section(reflect.ValueOf(cfg).Elem(), root, "")
	if tenants := root.get("tenants"); tenants.isEmpty() && cfg.TenantsDir == "" {
		p.add("tenants", "is empty, so that any key would pass: add a tenant, or remove tenants to open the proxy to all")
	}
	for i, token := range cfg.Admin.Tokens {
		cfg.Admin.Tokens[i].Value = config.Secret(env[token.Env])
	}
	cfg.Warnings = foreign.found()
	for _, tenant := range cfg.Tenants {
		for i, key := range tenant.APIKeys {
			tenant.APIKeys[i].Value = config.Secret(env[key.Env])
		}
	}
	return cfg
}

// expand replaces ${NAME} in every string value of a file.
func expand(root *node, path string, env map[string]string, p *problems) {
	root.each(path, func(path string, n *node) {
		if n.kind != kindString {
			return
		}
		text, used, err := syntax.Expand(n.text, env)
		n.text = text
		switch {
		case err != nil:
			p.addAt(n.origin, path, "%v", err)
			n.kind = kindBroken
		case used:
			n.kind = kindText
		}
	})
}

// document is a file that is read. It says where the file's values belong in the configuration, and how to name their origin.
type document struct {
	*problems
	name string // key for problems that concern the whole file
	path string // prefix of the file's keys; empty: they are complete
	from string // prefix of origins; empty: an origin is only a line
}

// origin returns the origin of a value on a line. A line of 0 is unknown.
func (d document) origin(line int) string {
	switch {
	case line == 0:
		return d.from
	case d.from == "":
		return lineOrigin(line)
	}
	return d.from + ", " + lineOrigin(line)
}

func lineOrigin(line int) string { return "line " + strconv.Itoa(line) }

// refuse adds a problem on a line; 0 means that the line is unknown. An empty key stands for the whole file.
func (d document) refuse(line int, key, format string, args ...any) {
	d.list.Add(cmp.Or(key, d.name), format, args...)
	d.list[len(d.list)-1].Origin = d.origin(line)
}

// read returns the tree of a file. It returns an empty tree if the name is empty, and nil, after adding a problem, if the file is larger than
// most bytes or cannot be parsed.
func (d document) read(file string, most limit.Bytes) *node {
	if file == "" {
		return &node{kind: kindTable}
	}
	text, err := readText(file, most)
	if err != nil {
		d.refuse(0, "", "%v", err)
		return nil
	}
	return d.parse(filepath.Ext(file), text)
}

func readText(name string, most limit.Bytes) ([]byte, error) {
	switch info, err := os.Stat(name); {
	case err == nil && info.IsDir():
		return nil, errors.New("is a folder: name a file, or move its files up")
	case err == nil && !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file: name one, or remove it") // a pipe might never end
	}
	file, err := os.Open(name) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, errors.New(reason(err))
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	switch {
	case err != nil:
		return nil, errors.New(reason(err))
	case len(text) > int(most):
		return nil, fmt.Errorf("is larger than %v: shorten it, or name the right file", most)
	case !utf8.Valid(text):
		return nil, errors.New("is not UTF-8 text: save it as UTF-8")
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil
}

func reason(err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return "cannot be read (" + err.Error() + "): check its name and permissions"
}

// parse returns the file's top section, or nil.
func (d document) parse(extension string, text []byte) (root *node) {
	switch strings.ToLower(extension) {
	case ".yaml", ".yml":
		root = d.parseMarkup(text, "is not YAML: check indentation, colons and quotes")
	case ".json":
		root = d.parseMarkup(text, "is not JSON: check commas, brackets and quotes")
	case ".toml":
		root = d.parseTOML(text)
		onlyLimits(root)
	default:
		d.refuse(0, "", "has no known extension: name it .yaml, .yml, .json or .toml")
	}
	if root == nil || root.kind == kindBroken {
		return nil
	}
	if root.kind != kindTable {
		d.refuse(0, "", "must contain keys, not %s: begin with a key, such as listen: 127.0.0.1:8080", root.kind)
		return nil
	}
	return root
}
