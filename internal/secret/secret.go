// Package secret holds strings that must not be shown, such as API keys.
package secret

import (
	"fmt"
	"io"
	"strconv"
)

// Redacted is shown in place of a secret. An empty secret is shown as empty.
const Redacted = "[redacted]"

// Value is a string that only Reveal returns. Package fmt, loggers, and the encoders of JSON, YAML, XML and text write Redacted instead. It must
// not be passed to an encoder that reads strings directly, such as those of gob and TOML.
type Value string

// Reveal returns the secret itself.
func (s Value) Reveal() string { return string(s) }

// String returns Redacted, or "" for an empty secret.
func (s Value) String() string {
	if s == "" {
		return ""
	}
	return Redacted
}

// Format writes the redacted form for every verb, so that %x and %d do not bypass String.
func (s Value) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(f, text)
}

// MarshalText returns String. The encoders of JSON, YAML and XML use it, and so does slog.
func (s Value) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
