package knowledge

import (
	"io/fs"
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/internal/watch"
)

// Folder holds the topics of a folder. If it cannot be reread, the old topics stay in use.
type Folder struct {
	path   string
	files  *watch.Files
	topics atomic.Pointer[[]Topic]
}

// Open reads a folder.
func Open(path string) (*Folder, error) {
	f := &Folder{path: path}
	f.files = watch.New(f.list) // before they are read, so that no change is missed
	return f, f.load()
}

// Reread reads the folder again if a file in it has changed, and reports whether one has. It must not be called concurrently, and regularly:
// see watch.Interval.
func (f *Folder) Reread() (changed bool, err error) {
	if !f.files.Changed() {
		return false, nil
	}
	return true, f.load()
}

// list lists the folder and everything in it.
func (f *Folder) list() (paths []string) {
	_ = walk(f.path, func(path string, _ fs.DirEntry) error { // load reports the error
		paths = append(paths, path)
		return nil
	})
	return paths
}

func (f *Folder) load() error {
	topics, err := read(f.path)
	if err != nil {
		return err
	}
	f.topics.Store(&topics)
	return nil
}

// Topics returns the folder's topics, ordered by path.
func (f *Folder) Topics() []Topic { return *f.topics.Load() }
