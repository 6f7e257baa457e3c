package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Hash is a SHA-256 value: a message digest, a chain hash or a trace.
type Hash [sha256.Size]byte

// IsZero reports whether h was never set.
func (h Hash) IsZero() bool { return h == Hash{} }

// String gives h in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Scope is the space in which histories are compared. It seeds every hash, so nothing is ever shared across it.
type Scope struct {
	Tenant     string
	Credential string // keyed hash of the client's credential where no tenants are configured, else empty
	Key        string // session key that the client gave, empty if none
}

// Secret is the server's key to every hash it makes. A client that does not hold it cannot forge a prefix.
type Secret []byte

// Seed is c0, the start of every chain in the scope.
func (s Secret) Seed(scope Scope) Hash {
	return s.derive("chain", scope.Tenant, scope.Credential, scope.Key)
}

// SessionID names the session that an explicit session key stands for.
func (s Secret) SessionID(scope Scope) SessionID {
	h := s.derive("session", scope.Tenant, scope.Credential, scope.Key)
	return SessionID(hex.EncodeToString(h[:12]))
}

// Credential hides a client's credential behind a keyed hash.
func (s Secret) Credential(credential string) string {
	h := s.derive("credential", credential)
	return hex.EncodeToString(h[:12])
}

// RecordKey is the key for records that clients carry, of 32 bytes, and a name that tells it from those of other secrets.
func (s Secret) RecordKey() (key, name []byte) {
	k, n := s.derive("record key"), s.derive("record key name")
	return k[:], n[:4]
}

// derive is HMAC-SHA-256 over length-prefixed parts, so that no two lists of parts give the same input.
func (s Secret) derive(parts ...string) Hash {
	mac := hmac.New(sha256.New, s)
	for _, p := range parts {
		mac.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(p))))
		mac.Write([]byte(p))
	}
	return Hash(mac.Sum(nil))
}

// next is one step of the chain: c(i) = SHA-256(c(i-1), digest(i)).
func next(prev, digest Hash) Hash {
	var b [2 * sha256.Size]byte
	copy(b[:], prev[:])
	copy(b[sha256.Size:], digest[:])
	return sha256.Sum256(b[:])
}
