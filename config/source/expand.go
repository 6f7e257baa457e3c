package source

import "github.com/dewpoint-proxy/dewpoint/config/internal/syntax"

// expandTree replaces ${NAME} in every string value of a file.
func expandTree(n *node, path string, env map[string]string, p *problems) {
	switch n.kind {
	case kindString:
		expandNode(n, path, env, p)
	case kindList:
		for i, item := range n.items {
			expandTree(item, syntax.Index(path, i), env, p)
		}
	case kindTable:
		for _, f := range n.fields {
			expandTree(f.node, syntax.Join(path, f.name), env, p)
		}
	}
}

func expandNode(n *node, path string, env map[string]string, p *problems) {
	text, used, err := syntax.Expand(n.text, env)
	if err != nil {
		p.givenAt(path, n.origin)
		p.add(path, "%v", err)
		n.kind = kindBroken
		return
	}
	n.text = text
	if used {
		n.kind = kindText
	}
}
