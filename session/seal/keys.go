// Package seal encrypts stored records. Each record is bound to its place and cannot be opened anywhere else.
//
// The cipher is XAES-256-GCM (https://c2sp.org/XAES-256-GCM): AES-256-GCM under a key that is derived for each record from
// the long-lived key and half of a random 192-bit nonce. Plain AES-GCM with a random 96-bit nonce is limited to 2^32
// records per key (NIST SP 800-38D, section 8.3), which a busy proxy writes within months, and replicas share no counter
// that could replace the random nonce. With 192 bits the same risk, 2^-32, is reached after 2^80 records, so keys have to
// be changed for other reasons only.
package seal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrTampered means that the record was changed, or that it was sealed for another place.
var ErrTampered = errors.New("a sealed record does not open: it was changed, or moved")

// KeyError is the error for a record that is sealed under a key that is not configured.
type KeyError struct{ ID string }

func (e *KeyError) Error() string {
	return fmt.Sprintf("a record is sealed under the key %q, which is not configured", e.ID)
}

// MaxID is the maximum length of a key's id in bytes.
const MaxID = 32

// Keys seals under one key and opens under any of its keys. It is safe for concurrent use. A nil *Keys neither seals nor
// opens anything.
type Keys struct {
	active string // empty to seal nothing new
	keys   map[string]*xaes
}

// New returns a set of 32-byte keys by id. New records are sealed under the active key, or not at all if active is empty.
// Errors name ids, never keys.
func New(active string, keys map[string][]byte) (*Keys, error) {
	k := &Keys{active: active, keys: map[string]*xaes{}}
	for _, id := range slices.Sorted(maps.Keys(keys)) {
		if id == "" || len(id) > MaxID {
			return nil, fmt.Errorf("encryption keys: an id must have 1 to %d bytes, not %d", MaxID, len(id))
		}
		x, err := newXAES(keys[id])
		if err != nil {
			return nil, fmt.Errorf("encryption key %s: %w", id, err)
		}
		k.keys[id] = x
	}
	if active != "" && k.keys[active] == nil {
		return nil, fmt.Errorf("encryption keys: the active key %s is not among them", active)
	}
	return k, nil
}

// Seals reports whether new records are sealed.
func (k *Keys) Seals() bool { return k != nil && k.active != "" }

// Seal seals plain for its place and appends it to b: the length of the key's id, the id, the nonce, the ciphertext and its
// tag. It must be called only if Seals returns true.
func (k *Keys) Seal(b, plain, place []byte) []byte {
	var nonce [nonceSize]byte
	_, _ = rand.Read(nonce[:]) // never fails
	b = append(b, under(k.active, nonce[:])...)
	return k.keys[k.active].aead(nonce[:]).Seal(b, nonce[half:], plain, under(k.active, place))
}

// Open opens a record that Seal sealed for the place. It returns a *KeyError if the key is not configured, or ErrTampered.
func (k *Keys) Open(sealed, place []byte) ([]byte, error) {
	if len(sealed) == 0 {
		return nil, ErrTampered
	}
	head := 1 + int(sealed[0])
	if len(sealed) < head+nonceSize+tagSize {
		return nil, ErrTampered
	}
	id, rest := string(sealed[1:head]), sealed[head:]
	if k == nil || k.keys[id] == nil {
		return nil, &KeyError{ID: id}
	}
	nonce, ciphertext := rest[:nonceSize], rest[nonceSize:]
	plain, err := k.keys[id].aead(nonce).Open(nil, nonce[half:], ciphertext, under(id, place))
	if err != nil {
		return nil, ErrTampered
	}
	return plain, nil
}

// under returns the length of a key's id, followed by the id and b. A record and its additional data begin in this form.
func under(id string, b []byte) []byte {
	return slices.Concat([]byte{byte(len(id))}, []byte(id), b) //nolint:gosec // at most MaxID
}
