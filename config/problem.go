package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong with a configuration. Its message never holds a secret, nor a value that came from the
// environment.
type Problem struct {
	Key     string // the full path, as tenants[1].condenser.keep_first; a file's name when it cannot be read
	Message string // what is wrong: what to do
	Origin  string // where the value was given: "line 7", "DEWPOINT_LISTEN", "--listen"; empty when not known
}

// Error returns "key: what is wrong: what to do (origin)".
func (p *Problem) Error() string {
	if p.Origin == "" {
		return p.Key + ": " + p.Message
	}
	return p.Key + ": " + p.Message + " (" + p.Origin + ")"
}

// Problems returns every Problem inside err, in the order in which they were found.
func Problems(err error) []Problem {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []Problem
		for _, one := range joined.Unwrap() {
			all = append(all, Problems(one)...)
		}
		return all
	}
	if one, ok := err.(*Problem); ok { //nolint:errorlint // each level is looked at in turn
		return []Problem{*one}
	}
	if inner := errors.Unwrap(err); inner != nil {
		return Problems(inner)
	}
	return nil
}

// problems collects what is wrong, and remembers where each key was given.
type problems struct {
	list    []*Problem
	origins map[string]string
}

func (p *problems) add(key, format string, args ...any) {
	p.list = append(p.list, &Problem{Key: key, Message: fmt.Sprintf(format, args...), Origin: p.originOf(key)})
}

func (p *problems) err() error {
	joined := make([]error, len(p.list))
	for i, problem := range p.list {
		joined[i] = problem
	}
	return errors.Join(joined...)
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
func (p *problems) unknown(section string, f field, advice string) {
	name := f.name
	if end := strings.IndexFunc(name, func(r rune) bool { return !plainName(string(r)) }); end >= 0 {
		name = name[:end] + "…"
	}
	p.givenAt(join(section, name), f.node.origin)
	p.add(join(section, name), "is not a known key: %s", advice)
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

// merge adds the problems that later found, but for those about a key that could not even be read.
func (p *problems) merge(later error) {
	unread := len(p.list)
	for _, problem := range Problems(later) {
		if !slices.ContainsFunc(p.list[:unread], func(first *Problem) bool { return within(problem.Key, first.Key) }) {
			problem.Origin = cmp.Or(problem.Origin, p.originOf(problem.Key))
			p.list = append(p.list, &problem)
		}
	}
}

// within says whether key is outer, or stands inside it.
func within(key, outer string) bool {
	rest, ok := strings.CutPrefix(key, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// join returns the path of a key inside a section. A name that would not read as one key is quoted.
func join(section, name string) string {
	if !plainName(name) {
		return section + fmt.Sprintf("[%q]", name)
	}
	if section == "" {
		return name
	}
	return section + "." + name
}

func plainName(name string) bool {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-')
	}
	return name != "" && !strings.ContainsFunc(name, odd)
}

func index(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
