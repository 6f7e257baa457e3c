package admin

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// query is the parameters of a request, each known and given once.
type query map[string]string

func readQuery(raw string, known []string) (query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fault(http.StatusBadRequest, "invalid_query", "The query string is malformed.")
	}
	q := query{}
	for name, all := range values {
		if !slices.Contains(known, name) {
			f := fault(http.StatusBadRequest, "unknown_parameter", "This path takes %s.", strings.Join(append(known, "no other parameter"), ", "))
			f.Param = name
			return nil, f
		}
		if len(all) > 1 {
			return nil, badParam(name, "Give it once.")
		}
		q[name] = all[0]
	}
	return q, nil
}

// number reads a parameter between low and high.
func (q query) number(name string, otherwise, low, high int) (int, error) {
	text, given := q[name]
	if !given {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, badParam(name, "Give a whole number from %d to %d.", low, high)
	}
	return n, nil
}

func (q query) flag(name string) (bool, error) {
	switch q[name] {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, badParam(name, "Give true or false.")
}

func (q query) time(name string) (time.Time, error) {
	text, given := q[name]
	if !given {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, badParam(name, "Give a time as in RFC 3339: 2006-01-02T15:04:05Z.")
	}
	return t, nil
}

const longestText = 256 // bytes of a parameter

func (q query) text(name string) (string, error) {
	if len(q[name]) > longestText {
		return "", badParam(name, "Give at most %d bytes.", longestText)
	}
	return q[name], nil
}

// longestID bounds the ids in paths, in bytes.
const longestID = 128

// named reads an id from the path.
func named(r *http.Request, part string) (string, error) {
	id := r.PathValue(part)
	odd := func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_'
	}
	if id == "" || len(id) > longestID || strings.ContainsFunc(id, odd) {
		return "", badParam(part, "An id is 1 to %d letters, digits, hyphens and underscores.", longestID)
	}
	return id, nil
}

func sessionID(r *http.Request) (session.SessionID, error) {
	id, err := named(r, "session")
	return session.SessionID(id), err
}

func threadID(r *http.Request) (session.ThreadID, error) {
	id, err := named(r, "thread")
	return session.ThreadID(id), err
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
