package source

import (
	"errors"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// problems collects what is wrong, and remembers where each key was given.
type problems struct {
	list    config.Problems
	origins map[string]string
}

func (p *problems) add(key, format string, args ...any) {
	p.list.Add(key, format, args...)
	p.list[len(p.list)-1].Origin = p.originOf(key)
}

// addAt adds a problem of a key that is given somewhere.
func (p *problems) addAt(origin, key, format string, args ...any) {
	p.givenAt(key, origin)
	p.add(key, format, args...)
}

func (p *problems) givenAt(key, origin string) {
	if p.origins == nil {
		p.origins = map[string]string{}
	}
	if origin != "" {
		p.origins[key] = origin
	}
}

// unknown reports a key that its section does not have. When the "key" is a line without its colon, as "token abc", only
// the first word is shown: what follows may be a secret.
func (p *problems) unknown(section string, f *node, advice string) {
	name := f.name
	if end := strings.IndexFunc(name, func(r rune) bool { return !syntax.Plain(string(r)) }); end >= 0 {
		name = name[:end] + "…"
	}
	p.addAt(f.origin, syntax.Join(section, name), "is not a known key: %s", advice)
}

// originOf looks for the key and then for what encloses it: a missing key is reported where its section is.
func (p *problems) originOf(key string) string {
	for key != "" {
		if origin := p.origins[key]; origin != "" {
			return origin
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return ""
}

// merge adds what Validate found, but for problems of a key that could not even be read.
func (p *problems) merge(later error) {
	var found config.Problems
	errors.As(later, &found)
	unread := len(p.list)
	for _, problem := range found {
		if !slices.ContainsFunc(p.list[:unread], func(first config.Problem) bool { return within(problem.Key, first.Key) }) {
			problem.Origin = p.originOf(problem.Key)
			p.list = append(p.list, problem)
		}
	}
}

// within reports whether key is outer, or inside it.
func within(key, outer string) bool {
	rest, ok := strings.CutPrefix(key, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
