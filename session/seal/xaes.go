package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"errors"
)

const (
	keySize   = 32
	nonceSize = 24
	tagSize   = 16
	half      = nonceSize / 2 // the first half of the nonce derives the key, the second is the nonce of AES-GCM
)

// xaes implements XAES-256-GCM. It derives the key of each record by the KDF in counter mode with CMAC (NIST SP 800-108r1),
// specialised to the two blocks that it needs.
type xaes struct {
	block cipher.Block
	sub   [aes.BlockSize]byte // CMAC's K1
}

func newXAES(key []byte) (*xaes, error) {
	if len(key) != keySize {
		return nil, errors.New("a key must have 32 bytes")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	x := &xaes{block: block}
	block.Encrypt(x.sub[:], x.sub[:])
	var carry byte
	for i := len(x.sub) - 1; i >= 0; i-- {
		carry, x.sub[i] = x.sub[i]>>7, x.sub[i]<<1|carry
	}
	x.sub[len(x.sub)-1] ^= carry * 0x87
	return x, nil
}

// aead returns AES-256-GCM under the key that is derived from the first half of nonce.
func (x *xaes) aead(nonce []byte) cipher.AEAD {
	var key [2 * aes.BlockSize]byte
	for i := range 2 {
		b := key[i*aes.BlockSize : (i+1)*aes.BlockSize]
		b[1], b[2] = byte(i+1), 'X'
		copy(b[4:], nonce[:half])
		subtle.XORBytes(b, b, x.sub[:])
		x.block.Encrypt(b, b)
	}
	block, _ := aes.NewCipher(key[:]) // never fails: the key has 32 bytes
	aead, _ := cipher.NewGCM(block)   // never fails: AES has blocks of 16 bytes
	return aead
}
