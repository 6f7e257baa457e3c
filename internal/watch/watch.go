// Package watch notices changes of files by looking at them again and again. Unlike notifications of the kernel, that works on every file
// system, through the links with which Kubernetes mounts files, and for what does not exist yet.
package watch

import (
	"maps"
	"os"
	"time"
)

// Interval is the time between two looks.
const Interval = 500 * time.Millisecond

// Files notices changes of files. It is not safe for concurrent use.
type Files struct {
	list  func() []string
	known map[string]os.FileInfo // when a change was last reported
	last  map[string]os.FileInfo // at the last look
}

// New returns Files that notices later changes. list names the files and folders at each look; some of them may not exist.
func New(list func() []string) *Files {
	f := &Files{list: list}
	f.known = f.look()
	f.last = f.known
	return f
}

// Changed looks at the files, and reports whether they have changed since New or since it last reported a change. A change is reported
// at the second look that finds the same, so that files written in pieces, or one after the other, are read once.
func (f *Files) Changed() bool {
	before := f.last
	f.last = f.look()
	if !maps.EqualFunc(f.last, before, same) || maps.EqualFunc(f.last, f.known, same) {
		return false
	}
	f.known = f.last
	return true
}

func (f *Files) look() map[string]os.FileInfo {
	found := map[string]os.FileInfo{}
	for _, path := range f.list() {
		if info, err := os.Stat(path); err == nil {
			found[path] = info
		}
	}
	return found
}

// same reports whether a file was neither written nor replaced, and is as readable as before.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}
