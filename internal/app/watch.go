package app

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file is left alone after a change, so that one which is written in pieces is read once.
const settle = 100 * time.Millisecond

// Watch calls changed each time the content of a file has become another one than what was seen of it, until ctx ends. It watches the folder: an
// editor puts a new file in the place of the old one, and Kubernetes turns a link.
func Watch(ctx context.Context, file string, seen []byte, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", file, err)
	}
	defer func() { _ = w.Close() }()
	if err := w.Add(filepath.Dir(file)); err != nil {
		return fmt.Errorf("watch %s: %w", file, err)
	}
	due := time.After(0) // it may have changed since it was seen
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-w.Events:
			if !open {
				return nil
			}
			due = time.After(settle)
		case <-w.Errors: //nolint:errcheck // events were lost, whatever it says: look
			due = time.After(settle)
		case <-due:
			due = nil
			now, err := os.ReadFile(file) //nolint:gosec // the operator names the file
			if err != nil || bytes.Equal(now, seen) {
				continue // gone for a moment, or something else in the folder
			}
			seen = now
			changed()
		}
	}
}
