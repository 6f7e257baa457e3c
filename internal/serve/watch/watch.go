// Package watch reports changes in folders. It watches folders rather than files, because editors replace files, and Kubernetes replaces a
// link.
package watch

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A change is reported when nothing else has changed for the duration settle, so that files which are written in pieces or one after the other
// are read once. If files are written all the time, it is reported after maxDelay.
const (
	settle   = 100 * time.Millisecond
	maxDelay = time.Second
)

// Folders watches folders from Start to Close.
type Folders struct {
	watcher *fsnotify.Watcher
	done    chan struct{} // closed when the loop ends; nil: not started
}

// New returns a Folders that watches no folder yet.
func New() (*Folders, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	return &Folders{watcher: w}, nil
}

// Start calls changed after each change since a folder was added. The calls come from one goroutine.
func (f *Folders) Start(changed func()) {
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		loop(f.watcher.Events, f.watcher.Errors, changed)
	}()
}

// Add watches a folder, but not its subfolders. A folder may be added again, for example after it was recreated.
func (f *Folders) Add(path string) error {
	if err := f.watcher.Add(path); err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	return nil
}

// Clear stops watching all folders. Changes until they are added again are not reported, so read them after that.
func (f *Folders) Clear() {
	for _, path := range f.watcher.WatchList() {
		_ = f.watcher.Remove(path) // it may not exist any more
	}
}

// loop calls changed when nothing has happened for a while. It ends when a channel is closed.
func loop(events <-chan fsnotify.Event, errors <-chan error, changed func()) {
	var due <-chan time.Time
	var latest time.Time
	for {
		var open bool
		var event fsnotify.Event
		select {
		case event, open = <-events:
			if open && !isRelevant(event) {
				continue
			}
		case _, open = <-errors: // events may have been lost
		case <-due:
			due = nil
			changed()
			continue
		}
		if !open {
			return
		}
		if due == nil {
			latest = time.Now().Add(maxDelay)
		}
		due = time.After(min(settle, time.Until(latest)))
	}
}

// isRelevant reports whether an event may be a change of a file that is read. The folders may also contain stores and logs, which are written
// all the time.
func isRelevant(e fsnotify.Event) bool {
	switch strings.ToLower(filepath.Ext(e.Name)) {
	case ".yaml", ".yml", ".json", ".toml", ".md":
		return true
	}
	return e.Op != fsnotify.Write
}

// Close stops watching, and waits for a running call of changed.
func (f *Folders) Close() error {
	err := f.watcher.Close()
	if f.done != nil {
		<-f.done
	}
	return err
}
