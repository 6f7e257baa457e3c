package config

import (
	"fmt"
	"io"
	"strconv"
)

// Redacted is what stands for a secret that is set. A secret that is empty stays visibly empty.
const Redacted = "[redacted]"

// Secret is a string that shows itself to Reveal only. Package fmt, loggers, and the encoders of JSON, YAML, XML and text
// write Redacted in its place; an encoder that reads strings without asking them, as gob's and TOML's, must not be given
// one.
type Secret string

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String returns Redacted, or "" for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return Redacted
}

// GoString returns String, quoted.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// Format writes the redacted form for every verb, so that %x or %d cannot get round String.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		text = s.GoString()
	}
	_, _ = io.WriteString(f, text)
}

// MarshalText returns String; encoders of JSON, YAML and XML use it, and slog's.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
