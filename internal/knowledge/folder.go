package knowledge

import (
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/internal/watch"
)

// Folder is a folder's topics. They are read anew whenever a file changes; a change that cannot be read leaves them as they were.
type Folder struct {
	path    string
	topics  atomic.Pointer[[]Topic]
	watched *watch.Folders
}

// Open reads a folder and watches it until it is closed. It tells changed of each change, with what is wrong.
func Open(path string, changed func(err error)) (*Folder, error) {
	w, err := watch.New()
	if err != nil {
		return nil, err
	}
	f := &Folder{path: path, watched: w}
	if err := f.load(); err != nil {
		_ = w.Close()
		return nil, err
	}
	w.Start(func() { changed(f.load()) })
	return f, nil
}

// load watches the folder and those in it, and then reads them, so that no change is missed.
func (f *Folder) load() error {
	err := walk(f.path, func(path string, d fs.DirEntry) error {
		if !d.IsDir() {
			return nil
		}
		return f.watched.Add(path)
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", f.path, err)
	}
	topics, err := read(f.path)
	if err != nil {
		return err
	}
	f.topics.Store(&topics)
	return nil
}

// Topics are the folder's, in the order of their paths.
func (f *Folder) Topics() []Topic { return *f.topics.Load() }

// Close ends the watch.
func (f *Folder) Close() error { return f.watched.Close() }
