package knowledge

import (
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/watch"
)

// Folder holds the topics of a folder. It rereads them whenever a file changes. If that fails, the old topics stay in use.
type Folder struct {
	path    string
	topics  atomic.Pointer[Topics]
	watched *watch.Folders
}

// Open reads a folder and watches it until Close. It calls changed after each change, with the error if the folder could not be read.
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

func (f *Folder) load() error {
	all, err := read(f.path, f.watched.Add)
	if err != nil {
		return err
	}
	topics, err := NewTopics(all)
	if err != nil {
		return err
	}
	f.topics.Store(topics)
	return nil
}

// Topics returns the folder's topics.
func (f *Folder) Topics() *Topics { return f.topics.Load() }

// Close stops watching.
func (f *Folder) Close() error { return f.watched.Close() }
