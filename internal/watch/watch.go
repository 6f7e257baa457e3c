// Package watch tells when something in folders has changed. Folders are watched, not files: an editor puts a new file in the place of
// the old one, and Kubernetes turns a link.
package watch

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long folders are left alone after a change, so that files which are written in pieces, or one after the other, are read
// once. Where files are written all the time it lasts no longer than patience.
const (
	settle   = 100 * time.Millisecond
	patience = time.Second
)

// Folders are watched from Start to Close.
type Folders struct {
	watcher *fsnotify.Watcher
	over    chan struct{} // nil: not started
}

// New watches no folder yet.
func New() (*Folders, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	return &Folders{watcher: w}, nil
}

// Start calls changed, from one goroutine, after each change since a folder was added.
func (f *Folders) Start(changed func()) {
	f.over = make(chan struct{})
	go func() {
		defer close(f.over)
		loop(f.watcher.Events, f.watcher.Errors, changed)
	}()
}

// Add watches a folder, without those in it. One that is watched already, or that has come back, may be added again.
func (f *Folders) Add(path string) error {
	if err := f.watcher.Add(path); err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	return nil
}

// Clear ends the watch of all folders. What changes until they are added again is not told: read them after that.
func (f *Folders) Clear() {
	for _, path := range f.watcher.WatchList() {
		_ = f.watcher.Remove(path) // it may have gone meanwhile
	}
}

// loop calls changed when nothing has happened for a while, until a channel is closed.
func loop(events <-chan fsnotify.Event, lost <-chan error, changed func()) {
	var due <-chan time.Time
	var latest time.Time
	for {
		var open bool
		var event fsnotify.Event
		select {
		case event, open = <-events:
			if open && !counts(event) {
				continue
			}
		case _, open = <-lost: // of events, whatever it says: look
		case <-due:
			due = nil
			changed()
			continue
		}
		if !open {
			return
		}
		if due == nil {
			latest = time.Now().Add(patience)
		}
		due = time.After(min(settle, time.Until(latest)))
	}
}

// counts reports whether an event may be a change of what is read: stores and logs, which are written all the time, lie in such folders, too.
func counts(e fsnotify.Event) bool {
	switch strings.ToLower(filepath.Ext(e.Name)) {
	case ".yaml", ".yml", ".json", ".toml", ".md":
		return true
	}
	return e.Op != fsnotify.Write
}

// Close ends the watch, and waits for a call of changed that is under way.
func (f *Folders) Close() error {
	err := f.watcher.Close()
	if f.over != nil {
		<-f.over
	}
	return err
}
