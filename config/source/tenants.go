package source

import (
	"cmp"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

func isTenants(t reflect.Type) bool { return t == reflect.TypeFor[[]config.Tenant]() }

// tenants reads a list, or a section whose keys are the tenants' names, followed by the tenants that have their own files.
func (d decoder) tenants(v reflect.Value, n *node, key string) {
	switch n.kind {
	case kindNull, kindBroken, kindTable:
	case kindList:
		d.list(v, n, key)
	default:
		d.problems.add(key, "must be a section of tenants by name, or a list, not %s: write it as {NAME: {api_keys: ...}}", n.kind)
	}
	for _, f := range n.fields {
		t, key := config.Tenant{}, cmp.Or(f.key, syntax.Join(key, f.name))
		d.value(reflect.ValueOf(&t).Elem(), f, key)
		if t.Name != "" && t.Name != f.name {
			d.problems.add(syntax.Join(key, "name"), "is not %q, the name of its section or file: remove it, or make them equal", f.name)
		}
		t.Key, t.Name, t.Confined = key, f.name, f.confined
		v.Set(reflect.Append(v, reflect.ValueOf(t)))
	}
}

// readTenants adds the tenants in the files of tenants_dir to the tree. The keys of their nodes and problems are paths in the whole
// configuration, and their origins name the file.
func readTenants(root *node, src Input, env map[string]string, p *problems) {
	overlaid := root.clone()
	overlayEnv(overlaid, env, &problems{})
	overlayFlags(overlaid, src.Flags, &problems{})
	dir := overlaid.get("tenants_dir")
	if dir == nil || dir.text == "" {
		return
	}
	p.givenAt("tenants_dir", dir.origin)
	tenants := root.get("tenants")
	if tenants == nil {
		tenants = root.set("tenants", &node{})
	}
	trusted := false
	if given := overlaid.get("tenants_trusted"); given != nil {
		trusted, _ = strconv.ParseBool(given.text) // the decoder reports anything else
	}
	for _, name := range tenantFiles(dir.text, "", "tenants_dir", p) {
		path, key := filepath.Join(dir.text, name), syntax.Join("tenants_dir", name)
		n := document{problems: p, name: key, path: key, from: path}.read(path, maxTenantFile)
		if n == nil {
			n = &node{kind: kindBroken}
		}
		n.key, n.origin = key, cmp.Or(n.origin, path)
		if n.confined = !trusted; n.confined {
			confine(n, p)
		}
		expand(n, n.key, env, p)
		n.name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		tenants.fields = append(tenants.fields, n)
	}
}

// tenantFiles lists the files of a folder and of the folders in it. It skips editors' backups and hidden files: a volume that Kubernetes mounts
// has hidden folders and links.
func tenantFiles(dir, within, key string, p *problems) (files []string) {
	entries, err := os.ReadDir(filepath.Join(dir, within))
	if err != nil {
		p.add(key, "%s", reason(err))
	}
	for _, entry := range entries {
		name := filepath.Join(within, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") || strings.HasSuffix(name, "~") {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() && within == "" {
			files = append(files, tenantFiles(dir, name, syntax.Join(key, name), p)...)
			continue
		}
		files = append(files, name)
	}
	return files
}

// ofThisMachine reports whether a key of a tenant names a file or folder.
func ofThisMachine(path string) bool {
	return strings.HasSuffix(path, ".memory.file") || strings.HasSuffix(path, ".prompt_file") ||
		strings.HasSuffix(path, ".folder") && (strings.HasSuffix(path, ".knowledge.folder") || strings.Contains(path, ".knowledge.also["))
}

// confine refuses settings in a tenant's file that would give its author the rights of the process: other files, and environment
// variables, which hold the operator's keys.
func confine(tenant *node, p *problems) {
	tenant.each(tenant.key, func(path string, n *node) {
		var what string
		switch {
		case n.kind == kindString && strings.Contains(strings.ReplaceAll(n.text, "$${", ""), "${"):
			what = "an environment variable"
		case n.text != "" && ofThisMachine(path):
			what = "a file or folder of this machine"
		default:
			return
		}
		n.kind = kindBroken // the file or folder is not looked at
		p.addAt(n.origin, path, "names %s: remove it, or set tenants_trusted to true in the configuration if you trust every file in tenants_dir", what)
	})
}
