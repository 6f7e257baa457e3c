//go:build unix

package boltstore

import (
	"errors"
	"os"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestFaultIsDamage: a fault on a page that no longer exists is damage, even if this package's code, reading a value, causes it.
func TestFaultIsDamage(t *testing.T) {
	s := start(t, Options{})
	page, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	must(t, err)
	err = s.view(func(*bolt.Tx) error {
		if page[0] != 0 {
			t.Error("the page was read")
		}
		return nil
	})
	if !errors.Is(err, session.ErrDamaged) {
		t.Errorf("got %v", err)
	}
	must(t, syscall.Munmap(page))
	wantSetAside(t, s)
}
