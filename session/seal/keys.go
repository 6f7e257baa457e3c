// Package seal encrypts what a store keeps, each record by itself and bound to its place, so that it opens nowhere else.
//
// The cipher is XAES-256-GCM (https://c2sp.org/XAES-256-GCM): AES-256-GCM under a key that is derived, for each record,
// from the long-lived one and half of a random nonce of 192 bits. AES-GCM with its own nonce of 96 random bits would be
// bound to 2^32 records a key (NIST SP 800-38D, section 8.3), which one busy proxy writes within months, and there is no
// counter that replicas could share. With 192 bits the same risk, 2^-32, is reached after 2^80 records: keys need to be
// changed for other reasons only.
package seal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrTampered: the record is not what was sealed at this place. It was changed, or it comes from another.
var ErrTampered = errors.New("a sealed record does not open: it was changed, or moved")

// KeyError is a record under a key that is not configured.
type KeyError struct{ ID string }

func (e *KeyError) Error() string {
	return fmt.Sprintf("a record is sealed under the key %q, which is not configured", e.ID)
}

// MaxID is how long a key's id may be, in bytes.
const MaxID = 32

// Keys seals under one key and opens under all. It is safe for concurrent use. The nil *Keys seals nothing and opens
// nothing.
type Keys struct {
	active string // empty: nothing new is sealed
	keys   map[string]*xaes
}

// New makes a set of keys of 32 bytes each, by id. What is new is sealed under the active one; without one nothing is.
// An error names ids, never keys.
func New(active string, keys map[string][]byte) (*Keys, error) {
	k := &Keys{active: active, keys: map[string]*xaes{}}
	for _, id := range slices.Sorted(maps.Keys(keys)) {
		if id == "" || len(id) > MaxID {
			return nil, fmt.Errorf("encryption keys: an id has 1 to %d bytes, not %d", MaxID, len(id))
		}
		x, err := newXAES(keys[id])
		if err != nil {
			return nil, fmt.Errorf("encryption key %s: %w", id, err)
		}
		k.keys[id] = x
	}
	if active != "" && k.keys[active] == nil {
		return nil, fmt.Errorf("encryption keys: the active one, %s, is not among them", active)
	}
	return k, nil
}

// Seals reports whether new records are sealed.
func (k *Keys) Seals() bool { return k != nil && k.active != "" }

// Seal appends plain, sealed for its place, to b: the key's id with its length in front, the nonce, the ciphertext and its
// tag. It must not be called unless Seals says so.
func (k *Keys) Seal(b, plain, place []byte) []byte {
	b = append(append(b, byte(len(k.active))), k.active...) //nolint:gosec // at most MaxID
	var nonce [nonceSize]byte
	_, _ = rand.Read(nonce[:]) // never fails
	b = append(b, nonce[:]...)
	aead, err := k.keys[k.active].aead(nonce[:])
	if err != nil {
		panic("seal: " + err.Error()) // AES knows keys of 32 bytes
	}
	return aead.Seal(b, nonce[half:], plain, bound(k.active, place))
}

// Open gives what was sealed for the place: a *KeyError if its key is not there, or ErrTampered.
func (k *Keys) Open(sealed, place []byte) ([]byte, error) {
	if len(sealed) == 0 || len(sealed) < 1+int(sealed[0])+nonceSize+tagSize {
		return nil, ErrTampered
	}
	id, rest := string(sealed[1:1+sealed[0]]), sealed[1+sealed[0]:]
	if k == nil || k.keys[id] == nil {
		return nil, &KeyError{ID: id}
	}
	nonce, ciphertext := rest[:nonceSize], rest[nonceSize:]
	aead, err := k.keys[id].aead(nonce)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nonce[half:], ciphertext, bound(id, place))
	if err != nil {
		return nil, ErrTampered
	}
	return plain, nil
}

// bound is the additional data of a record.
func bound(id string, place []byte) []byte {
	b := make([]byte, 0, 1+len(id)+len(place))
	b = append(append(b, byte(len(id))), id...) //nolint:gosec // at most MaxID
	return append(b, place...)
}
