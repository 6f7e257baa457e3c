package admin

import (
	"cmp"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// query holds the query parameters of a request. The route knows each of them, and none is repeated.
type query struct {
	values map[string]string
	err    error // the first invalid parameter among those read so far
}

func readQuery(raw string, known []string) (*query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fault(http.StatusBadRequest, "invalid_query", "The query string is malformed.")
	}
	q := &query{values: map[string]string{}}
	for name, all := range values {
		if !slices.Contains(known, name) {
			f := fault(http.StatusBadRequest, "unknown_parameter", "Parameters of this path: %s.", cmp.Or(strings.Join(known, ", "), "none"))
			f.Param = name
			return nil, f
		}
		if len(all) > 1 {
			return nil, badParam(name, "Give it only once.")
		}
		q.values[name] = all[0]
	}
	return q, nil
}

func (q *query) refuse(name, format string, args ...any) {
	if q.err == nil {
		q.err = badParam(name, format, args...)
	}
}

// number reads an integer from 1 to high.
func (q *query) number(name string, fallback, high int) int {
	text, given := q.values[name]
	if !given {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > high {
		q.refuse(name, "Give an integer from 1 to %d.", high)
	}
	return n
}

func (q *query) flag(name string) bool {
	text := q.values[name]
	if text != "" && text != "true" && text != "false" {
		q.refuse(name, "Give true or false.")
	}
	return text == "true"
}

func (q *query) time(name string) time.Time {
	text, given := q.values[name]
	if !given {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		q.refuse(name, "Give a time in RFC 3339 format, such as 2006-01-02T15:04:05Z.")
	}
	return t
}

const maxTextBytes = 256 // of a parameter

func (q *query) text(name string) string {
	if len(q.values[name]) > maxTextBytes {
		q.refuse(name, "Give at most %d bytes.", maxTextBytes)
	}
	return q.values[name]
}

var validID = regexp.MustCompile(`^[0-9A-Za-z_-]{1,128}$`)

// id reads an ID from the path.
func (q *query) id(r *http.Request, part string) string {
	id := r.PathValue(part)
	if !validID.MatchString(id) {
		q.refuse(part, "An ID consists of 1 to 128 letters, digits, hyphens and underscores.")
	}
	return id
}

// checkNoBody rejects a request whose body is neither blank nor an empty object, for routes that do not read one.
func checkNoBody(r *http.Request) error {
	const maxBytes = 64
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBytes))
	if text := strings.TrimSpace(string(body)); err != nil || text != "" && text != "{}" {
		return fault(http.StatusBadRequest, "body_not_allowed", "Send no body, or {}.")
	}
	return nil
}
