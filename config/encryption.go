package config

import (
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// Encryption holds the keys for stored content. Without an active key, new content is not encrypted. Encrypted content stays readable as long as
// its key is in Keys.
type Encryption struct {
	Active string            `yaml:"active"` // the id of the key for new content
	Keys   map[string]Secret `yaml:"keys"`   // by id: 32 bytes in base64 or hexadecimal
}

const (
	encryptionKeySize = 32
	maxEncryptionID   = 32
)

// Decoded returns the keys as bytes, by id, without malformed ones, which Validate reports.
func (e Encryption) Decoded() map[string][]byte {
	keys := map[string][]byte{}
	for id, text := range e.Keys {
		if key, ok := encryptionKey(text.Reveal()); ok {
			keys[id] = key
		}
	}
	return keys
}

// encryptionKey decodes 32 bytes in hexadecimal, or in base64 of either alphabet, padded or not.
func encryptionKey(text string) ([]byte, bool) {
	if key, err := hex.DecodeString(text); err == nil && len(key) == encryptionKeySize {
		return key, true
	}
	for _, base := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if key, err := base.Strict().DecodeString(text); err == nil && len(key) == encryptionKeySize {
			return key, true
		}
	}
	return nil, false
}

func (v *validator) encryption(key string, e Encryption) {
	owners := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(e.Keys)) {
		path := syntax.Join(key+".keys", id)
		decoded, ok := encryptionKey(e.Keys[id].Reveal())
		switch {
		case !syntax.Plain(id) || len(id) > maxEncryptionID:
			v.add(key+".keys", "has an id that is not plain: use up to %d letters, digits, - and _, and write the key after it", maxEncryptionID)
			continue // no message shows the id, since it may be the key itself
		case !ok:
			v.add(path, "is not 32 bytes in base64 or hexadecimal: make one with openssl rand -base64 32, put it in an environment variable, and write ${NAME}")
		case owners[string(decoded)] != "":
			v.add(path, "is also the key of %s: make a different one for each", owners[string(decoded)])
		}
		owners[string(decoded)] = path
	}
	if _, known := e.Keys[e.Active]; e.Active != "" && !known {
		v.add(key+".active", "is not an entry of keys: name one of them, or leave it empty to encrypt nothing new")
	}
}
