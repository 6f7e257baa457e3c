package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Hash is a SHA-256 value: a message digest, a chain hash or a trace.
type Hash [sha256.Size]byte

// IsZero reports whether h is not set.
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns h in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Scope separates histories from each other. It seeds every hash, so scopes share nothing.
type Scope struct {
	Tenant     string
	Credential string // keyed hash of the client's credential if no tenants are configured, otherwise empty
	Key        string // session key that the client sent, empty if none
}

// Secret is the key of all hashes that the server makes. Without it a client cannot forge a prefix.
type Secret []byte

// Seed returns c0, the start of every chain in the scope.
func (s Secret) Seed(scope Scope) Hash {
	return s.derive("chain", scope.Tenant, scope.Credential, scope.Key)
}

// SessionID returns the id of the session that the scope's session key names.
func (s Secret) SessionID(scope Scope) SessionID {
	return SessionID(s.derive("session", scope.Tenant, scope.Credential, scope.Key).String()[:24])
}

// Credential returns a keyed hash of a client's credential.
func (s Secret) Credential(credential string) string {
	return s.derive("credential", credential).String()[:24]
}

// RecordKey returns the 32-byte key for records that clients carry, and a name that distinguishes it from the keys of other
// secrets.
func (s Secret) RecordKey() (key, name []byte) {
	k, n := s.derive("record key"), s.derive("record key name")
	return k[:], n[:4]
}

// Mark returns a keyed hash of a nonce, by which servers with the same secret recognise each other's requests.
func (s Secret) Mark(nonce string) string {
	return s.derive("mark", nonce).String()[:32]
}

// derive returns HMAC-SHA-256 over the parts. Each is prefixed by its length, so that different parts never give the same
// input.
func (s Secret) derive(parts ...string) Hash {
	mac := hmac.New(sha256.New, s)
	for _, p := range parts {
		mac.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(p))))
		mac.Write([]byte(p))
	}
	return Hash(mac.Sum(nil))
}

// Next returns the next hash of a chain: c(i) = SHA-256(c(i-1), digest(i)).
func Next(prev, digest Hash) Hash {
	var b [2 * sha256.Size]byte
	copy(b[:], prev[:])
	copy(b[sha256.Size:], digest[:])
	return sha256.Sum256(b[:])
}
