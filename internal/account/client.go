package account

import (
	"strings"
)

// Longest names, in bytes. Clients can make them up.
const (
	maxAgent   = 24
	maxVersion = 16
)

// ClientOf reads a User-Agent header: its first product, in lower case, and that product's version. What does not look like one is left out.
func ClientOf(userAgent string) Client {
	product, _, _ := strings.Cut(strings.TrimSpace(userAgent), " ")
	name, version, _ := strings.Cut(product, "/")
	if name == "OpenAI" || name == "Anthropic" { // their libraries: "OpenAI/Python 1.2.3"
		name += "-" + version
		_, version, _ = strings.Cut(userAgent, " ")
		version, _, _ = strings.Cut(version, " ")
	}
	name = strings.ToLower(name)
	if !isPlain(name, maxAgent) {
		return Client{}
	}
	if !isPlain(version, maxVersion) {
		version = ""
	}
	return Client{Agent: name, Version: version}
}

// isPlain reports whether a name is short and consists of letters, digits and few other characters.
func isPlain(name string, longest int) bool {
	if name == "" || len(name) > longest {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '+':
		default:
			return false
		}
	}
	return true
}
