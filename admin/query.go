package admin

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// query is the parameters of a request, each known and given once.
type query struct {
	given map[string]string
	err   error // the first that is wrong, of those that were read
}

func readQuery(raw string, known []string) (*query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fault(http.StatusBadRequest, "invalid_query", "The query string is malformed.")
	}
	q := &query{given: map[string]string{}}
	for name, all := range values {
		if !slices.Contains(known, name) {
			f := fault(http.StatusBadRequest, "unknown_parameter", "This path takes %s.", strings.Join(append(known, "no other parameter"), ", "))
			f.Param = name
			return nil, f
		}
		if len(all) > 1 {
			return nil, badParam(name, "Give it once.")
		}
		q.given[name] = all[0]
	}
	return q, nil
}

func (q *query) refuse(name, format string, args ...any) {
	if q.err == nil {
		q.err = badParam(name, format, args...)
	}
}

// number reads a parameter between low and high.
func (q *query) number(name string, otherwise, low, high int) int {
	text, given := q.given[name]
	if !given {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		q.refuse(name, "Give a whole number from %d to %d.", low, high)
	}
	return n
}

func (q *query) flag(name string) bool {
	text := q.given[name]
	if text != "" && text != "true" && text != "false" {
		q.refuse(name, "Give true or false.")
	}
	return text == "true"
}

func (q *query) time(name string) time.Time {
	text, given := q.given[name]
	if !given {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		q.refuse(name, "Give a time as in RFC 3339: 2006-01-02T15:04:05Z.")
	}
	return t
}

const longestText = 256 // bytes of a parameter

func (q *query) text(name string) string {
	if len(q.given[name]) > longestText {
		q.refuse(name, "Give at most %d bytes.", longestText)
	}
	return q.given[name]
}

// longestID bounds the ids in paths, in bytes.
const longestID = 128

// id reads an id from the path.
func (q *query) id(r *http.Request, part string) string {
	id := r.PathValue(part)
	odd := func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_'
	}
	if id == "" || len(id) > longestID || strings.ContainsFunc(id, odd) {
		q.refuse(part, "An id is 1 to %d letters, digits, hyphens and underscores.", longestID)
	}
	return id
}

// noBody refuses a body that says something: no route reads one.
func noBody(r *http.Request) error {
	const most = 64
	body, err := io.ReadAll(io.LimitReader(r.Body, most))
	if text := strings.TrimSpace(string(body)); err != nil || text != "" && text != "{}" {
		return fault(http.StatusBadRequest, "body_not_allowed", "Send no body, or {}.")
	}
	return nil
}
