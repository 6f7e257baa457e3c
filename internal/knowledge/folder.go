package knowledge

import (
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Folder is a folder's topics. They are read anew whenever a file changes; a change that cannot be read leaves them as they were.
type Folder struct {
	path    string
	topics  atomic.Pointer[[]Topic]
	changed func(err error) // is told of each change, with what is wrong
	watcher *fsnotify.Watcher
	over    chan struct{}
}

// Open reads a folder and watches it until it is closed.
func Open(path string, changed func(err error)) (*Folder, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", path, err)
	}
	f := &Folder{path: path, changed: changed, watcher: w, over: make(chan struct{})}
	if err := f.load(); err != nil {
		_ = w.Close()
		return nil, err
	}
	go f.watch()
	return f, nil
}

// load watches the folder and those in it, and then reads them, so that no change is missed.
func (f *Folder) load() error {
	err := walk(f.path, func(path string, d fs.DirEntry) error {
		if !d.IsDir() {
			return nil
		}
		return f.watcher.Add(path)
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

// settle is how long the folder is left alone after a change, so that a file which is written in pieces is read once.
const settle = 100 * time.Millisecond

func (f *Folder) watch() {
	defer close(f.over)
	var due <-chan time.Time
	for {
		select {
		case _, open := <-f.watcher.Events:
			if !open {
				return
			}
			due = time.After(settle)
		case _, open := <-f.watcher.Errors: // events were lost: look
			if !open {
				return
			}
			due = time.After(settle)
		case <-due:
			due = nil
			f.changed(f.load())
		}
	}
}

// Topics are the folder's, in the order of their paths.
func (f *Folder) Topics() []Topic { return *f.topics.Load() }

// Close ends the watch.
func (f *Folder) Close() error {
	err := f.watcher.Close()
	<-f.over
	return err
}
