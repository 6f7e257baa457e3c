package source

import (
	"errors"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// problems collects problems, and the origins of keys.
type problems struct {
	list    config.Problems
	origins map[string]string // by key: where it was set
	foreign []string          // keys of what OpenHands' own sections became
}

// add adds a problem with the origin of its key.
func (p *problems) add(key, format string, args ...any) {
	p.list.Add(key, format, args...)
	p.list[len(p.list)-1].Origin = p.originOf(key)
}

// addAt adds a problem of a key that was set at origin.
func (p *problems) addAt(origin, key, format string, args ...any) {
	p.givenAt(key, origin)
	p.add(key, format, args...)
}

// givenAt records the origin of a key: where it was set.
func (p *problems) givenAt(key, origin string) {
	if p.origins == nil {
		p.origins = map[string]string{}
	}
	if origin != "" {
		p.origins[key] = origin
	}
}

// unknown reports a key that its section does not have. Only the plain characters at its beginning are shown: the key may be a line without its
// colon, such as "token abc", and the rest a secret.
func (p *problems) unknown(section string, f *node, advice string) {
	name := f.name
	if end := strings.IndexFunc(name, func(r rune) bool { return !syntax.Plain(string(r)) }); end >= 0 {
		name = name[:end] + "…"
	}
	p.addAt(f.origin, syntax.Join(section, name), "is not a known key: %s", advice)
}

// originOf returns the origin of a key, or of the innermost section that has one: a missing key is reported where its section is.
func (p *problems) originOf(key string) string {
	for key != "" {
		if origin := p.origins[key]; origin != "" {
			return origin
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return ""
}

// merge adds the problems that Validate found, except those that follow from an earlier problem, such as a value that could not be read.
// isRelated reports by two keys whether a problem of the first follows from an earlier one of the second.
func (p *problems) merge(err error, isRelated func(key, earlier string) bool) {
	var found config.Problems
	errors.As(err, &found)
	earlier := p.list
	for _, problem := range found {
		unread := slices.ContainsFunc(earlier, func(e config.Problem) bool { return isRelated(problem.Key, e.Key) })
		if !unread {
			problem.Origin = p.originOf(problem.Key)
			p.list = append(p.list, problem)
		}
	}
}

// located returns warnings with the origins of their keys. It leaves out those about whole sections that OpenHands may need.
func (p *problems) located(found config.Problems) config.Problems {
	found = slices.DeleteFunc(found, func(w config.Problem) bool { return slices.Contains(p.foreign, w.Key) })
	for i := range found {
		found[i].Origin = p.originOf(found[i].Key)
	}
	return found
}

// within reports whether key is outer, or a key in it.
func within(key, outer string) bool {
	rest, ok := strings.CutPrefix(key, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
