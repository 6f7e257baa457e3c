package proxy

import "crypto/rand"

// The headers of a request's id: the one that clients and gateways give it, and the one that it is told back in.
const (
	givenID = "X-Request-Id"
	toldID  = "X-Dewpoint-Request-Id"
)

// longestID is how long an id may be that a client gives, in bytes.
const longestID = 64

// requestID is the id by which a request is found in the log: the client's own if it is short and plain, else a new one.
func requestID(given []byte) string {
	if len(given) == 0 || len(given) > longestID {
		return rand.Text()
	}
	for _, c := range given {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == ':':
		default:
			return rand.Text()
		}
	}
	return string(given)
}
