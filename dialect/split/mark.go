package split

import (
	"crypto/sha256"
	"fmt"
)

// Mark names a compaction that upstream made by what it holds: a history that begins with it is recognised by that.
func Mark(held string) string { return fmt.Sprintf("compaction %x", sha256.Sum256([]byte(held))) }
