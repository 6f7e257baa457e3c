package storetest_test

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session/store"
	"github.com/dewpoint-proxy/dewpoint/session/store/memory"
	"github.com/dewpoint-proxy/dewpoint/session/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memory.New() }, func(_ *testing.T, s store.Store, key store.Key) time.Duration {
		return s.(*memory.Store).Life(key)
	})
}
