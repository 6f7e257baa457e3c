package knowledge

import (
	"context"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/watch"
)

// Folder holds the topics of a folder. It rereads them whenever a file changes. If that fails, the old topics stay in use.
type Folder struct {
	path   string
	topics atomic.Pointer[[]Topic]
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// Open reads a folder and watches it until Close. It calls changed after each change, with the error if the folder could not be read.
func Open(path string, changed func(err error)) (*Folder, error) {
	f := &Folder{path: path}
	files := watch.New(f.files) // before they are read, so that no change is missed
	if err := f.load(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.work.Go(func() {
		ticker := time.NewTicker(watch.Interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if files.Changed() {
				changed(f.load())
			}
		}
	})
	return f, nil
}

// files lists the folder and everything in it.
func (f *Folder) files() (paths []string) {
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

// Close stops watching, and waits for a running call of changed.
func (f *Folder) Close() {
	f.stop()
	f.work.Wait()
}
