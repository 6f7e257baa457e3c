package app

import (
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// perModel chooses a condenser by the model that a request names: by the exact name, else by its longest prefix, else the
// fallback.
type perModel struct {
	fallback condense.Condenser
	exact    map[string]condense.Condenser
	prefixes []prefixed // the longest first
}

type prefixed struct {
	prefix    string
	condenser condense.Condenser
}

var _ condense.Condenser = perModel{}

// add registers a condenser for a model, or for a prefix of names, which ends in a *.
func (p *perModel) add(name string, c condense.Condenser) {
	prefix, is := strings.CutSuffix(name, "*")
	if !is {
		p.exact[name] = c
		return
	}
	p.prefixes = append(p.prefixes, prefixed{prefix, c})
	slices.SortFunc(p.prefixes, func(a, b prefixed) int { return len(b.prefix) - len(a.prefix) })
}

func (p perModel) Name() string { return p.fallback.Name() }

func (p perModel) Condense(in condense.Input) condense.Decision { return p.of(in.Model).Condense(in) }

func (p perModel) of(model string) condense.Condenser {
	if c, ok := p.exact[model]; ok {
		return c
	}
	for _, entry := range p.prefixes {
		if strings.HasPrefix(model, entry.prefix) {
			return entry.condenser
		}
	}
	return p.fallback
}
