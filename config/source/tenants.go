package source

import (
	"cmp"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

func isTenants(t reflect.Type) bool { return t == reflect.TypeFor[[]config.Tenant]() }

// tenants reads a list, or a section whose keys are their names, and after it those that have files of their own.
func (d decoder) tenants(v reflect.Value, n *node, key string) {
	switch n.kind {
	case kindNull, kindBroken, kindTable:
	default:
		d.list(v, n, key)
	}
	for _, f := range n.fields {
		tenant := reflect.New(v.Type().Elem())
		d.tenant(tenant.Interface().(*config.Tenant), f, cmp.Or(f.node.key, syntax.Join(key, f.name)))
		v.Set(reflect.Append(v, tenant.Elem()))
	}
}

func (d decoder) tenant(t *config.Tenant, f field, key string) {
	d.value(reflect.ValueOf(t).Elem(), f.node, key)
	if t.Name != "" && t.Name != f.name {
		d.problems.add(syntax.Join(key, "name"), "is not %q, the name that its section or file has: remove it, or make them equal", f.name)
	}
	t.Key, t.Name = key, f.name
}

// readTenants adds to tenants what the files of tenants_dir hold. Files whose names begin with a dot are left out: a volume that
// Kubernetes mounts has such folders and links.
func readTenants(root *node, src Input, env map[string]string, p *problems) {
	overlaid := root.clone()
	overlayEnv(overlaid, env, &problems{})
	overlayFlags(overlaid, src.Flags, &problems{})
	dir := overlaid.get("tenants_dir")
	if dir == nil || dir.text == "" {
		return
	}
	p.givenAt("tenants_dir", dir.origin)
	files, err := os.ReadDir(dir.text)
	if err != nil {
		p.add("tenants_dir", "%s", reason(err))
		return
	}
	tenants := root.get("tenants")
	if tenants == nil {
		tenants = &node{}
		root.set("tenants", tenants)
	}
	for _, file := range files {
		if name := file.Name(); !strings.HasPrefix(name, ".") {
			n := readTenant(filepath.Join(dir.text, name), syntax.Join("tenants_dir", name), p)
			expandTree(n, n.key, env, p)
			tenants.fields = append(tenants.fields, field{strings.TrimSuffix(name, filepath.Ext(name)), n})
		}
	}
}

// readTenant reads one file. What it holds, and what is wrong with it, has its key in the configuration, and tells the file with the line.
func readTenant(path, key string, p *problems) *node {
	own := &problems{}
	n := readFile(path, own)
	if n == nil {
		n = &node{kind: kindBroken}
	}
	for _, problem := range own.list {
		problem.Origin = inFile(path, problem.Origin)
		switch {
		case problem.Key == path:
			problem.Key = key
		case strings.HasPrefix(problem.Key, "["):
			problem.Key = key + problem.Key
		default:
			problem.Key = key + "." + problem.Key
		}
		p.list = append(p.list, problem)
	}
	n.key = key
	n.from(path)
	return n
}

// from adds the file to where a node and those below it were found. Merge keys make some of them stand in two places.
func (n *node) from(path string) {
	if !strings.HasPrefix(n.origin, path) {
		n.origin = inFile(path, n.origin)
	}
	for _, item := range n.items {
		item.from(path)
	}
	for _, f := range n.fields {
		f.node.from(path)
	}
}

func inFile(path, line string) string {
	if line == "" {
		return path
	}
	return path + ", " + line
}
