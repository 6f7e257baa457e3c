package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
)

// Hash tells configurations apart. Secrets do not count.
func (c *Config) Hash() uint32 {
	text, _ := json.Marshal(c) // cannot fail: it is plain data
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint32(sum[:])
}
