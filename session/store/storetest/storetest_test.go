package storetest_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session/store"
	"github.com/dewpoint-proxy/dewpoint/session/store/memory"
	"github.com/dewpoint-proxy/dewpoint/session/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memory.New() })
}
