package config

import (
	"encoding/json"
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

// MarshalText returns String; encoders of XML and slog's text use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns String as JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalYAML returns String.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }
