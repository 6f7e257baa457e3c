package seal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, keySize) }

func keys(t testing.TB, active string, all map[string][]byte) *Keys {
	t.Helper()
	k, err := New(active, all)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestVectors checks the test vectors of the specification.
func TestVectors(t *testing.T) {
	const nonce = "ABCDEFGHIJKLMNOPQRSTUVWX"
	for _, c := range []struct {
		key       []byte
		aad, want string
	}{
		{key(1), "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{key(3), "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		x, err := newXAES(c.key)
		if err != nil {
			t.Fatal(err)
		}
		got := x.aead([]byte(nonce)).Seal(nil, []byte(nonce[half:]), []byte("XAES-256-GCM"), []byte(c.aad))
		if hex.EncodeToString(got) != c.want {
			t.Errorf("got %x, want %s", got, c.want)
		}
	}
}

func TestSealedRoundTrip(t *testing.T) {
	k := keys(t, "b", map[string][]byte{"a": key(1), "b": key(2)})
	property.Check(t, func(t *rapid.T) {
		plain, place := rapid.SliceOf(rapid.Byte()).Draw(t, "plain"), rapid.SliceOf(rapid.Byte()).Draw(t, "place")
		sealed := k.Seal(nil, plain, place)
		got, err := k.Open(sealed, place)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%x, %v", got, err)
		}
		if again := k.Seal(nil, plain, place); bytes.Equal(again, sealed) {
			t.Fatal("two records of the same content are the same")
		}
	})
}

// TestTampering changes, cuts and moves a record: it never opens.
func TestTampering(t *testing.T) {
	k := keys(t, "a", map[string][]byte{"a": key(1), "b": key(2)})
	place := []byte("thread 1")
	sealed := k.Seal(nil, []byte("the treasure is at Elm Street"), place)
	refused := func(what string, sealed, place []byte) {
		t.Helper()
		var unknown *KeyError
		if got, err := k.Open(sealed, place); !errors.Is(err, ErrTampered) && !errors.As(err, &unknown) || got != nil {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	for i := range sealed {
		for bit := range 8 {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1 << bit
			refused("a bit changed", changed, place)
		}
		refused("cut", sealed[:i], place)
	}
	refused("longer", append(bytes.Clone(sealed), 0), place)
	refused("elsewhere", sealed, []byte("thread 2"))
	refused("nowhere", sealed, nil)
	other := bytes.Clone(sealed)
	other[1] = 'b'
	refused("under another key", other, place)
	refused("an id of 255 bytes", bytes.Repeat([]byte{255}, 400), place) // a byte plus 1 is 0
}

func TestRotation(t *testing.T) {
	before := keys(t, "old", map[string][]byte{"old": key(1)})
	both := keys(t, "new", map[string][]byte{"old": key(1), "new": key(2)})
	after := keys(t, "new", map[string][]byte{"new": key(2)})
	reading := keys(t, "", map[string][]byte{"new": key(2)})
	old, place := before.Seal(nil, []byte("x"), nil), []byte(nil)
	if got, err := both.Open(old, place); string(got) != "x" || err != nil {
		t.Errorf("after a rotation: %q, %v", got, err)
	}
	renewed := both.Seal(nil, []byte("y"), place)
	for _, k := range []*Keys{after, reading} {
		if got, err := k.Open(renewed, place); string(got) != "y" || err != nil {
			t.Errorf("a new record: %q, %v", got, err)
		}
	}
	for _, k := range []*Keys{after, reading, nil} {
		var unknown *KeyError
		if _, err := k.Open(old, place); !errors.As(err, &unknown) || unknown.ID != "old" {
			t.Errorf("a key was removed: %v", err)
		}
	}
	if reading.Seals() || (*Keys)(nil).Seals() || !after.Seals() {
		t.Error("Seals is wrong")
	}
}

func TestNewRefuses(t *testing.T) {
	secret := "MARKER-of-thirty-two-bytes,MARKER-and-more"
	for name, c := range map[string]struct {
		active string
		keys   map[string][]byte
	}{
		"short": {"a", map[string][]byte{"a": []byte("MARKER")}}, "long": {"a", map[string][]byte{"a": []byte(secret)}},
		"no such key": {"b", map[string][]byte{"a": key(1)}}, "no key": {"a", nil},
		"no id": {"", map[string][]byte{"": key(1)}}, "long id": {"", map[string][]byte{strings.Repeat("i", MaxID+1): key(1)}},
	} {
		if _, err := New(c.active, c.keys); err == nil || strings.Contains(err.Error(), "MARKER") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	k, err := New("a", map[string][]byte{"a": key(1)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(k.Seal(nil, []byte("x"), []byte("place"))[1:], []byte("place"))
	f.Add([]byte{}, []byte{})
	f.Add([]byte{255}, []byte{})
	f.Fuzz(func(t *testing.T, sealed, place []byte) {
		if got, err := k.Open(sealed, place); err == nil {
			t.Errorf("%x opened: %x", sealed, got)
		}
	})
}

func BenchmarkSeal2KB(b *testing.B) {
	k, err := New("a", map[string][]byte{"a": key(1)})
	if err != nil {
		b.Fatal(err)
	}
	plain, place, out := make([]byte, 2048), make([]byte, 120), make([]byte, 0, 4096)
	b.SetBytes(int64(len(plain)))
	for b.Loop() {
		out = k.Seal(out[:0], plain, place)
	}
}
