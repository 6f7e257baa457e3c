package boltstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Found is what a look at a file shows.
type Found struct {
	Sessions int
	Bytes    int64 // of the file
}

// Look reads the file of a store that no process uses, and changes nothing. The error is os.ErrNotExist if there is no file yet, ErrInUse if a process
// has it, and wraps session.ErrDamaged if the next start would rename it.
func Look(path string) (Found, error) {
	if err := checkPath(path); err != nil {
		return Found{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Found{}, err
	}
	if lock, err := os.OpenFile(path+".lock", os.O_RDWR, 0); err == nil { //nolint:gosec // beside the file that the operator names
		defer lock.Close() //nolint:errcheck // which unlocks it
		if locked, err := platform.TryLock(lock); !locked {
			return Found{}, errors.Join(ErrInUse, err)
		}
	}
	found := Found{Bytes: info.Size()}
	var last recoveryContent
	if text, err := os.ReadFile(path + ".recovery"); err == nil && json.Unmarshal(text, &last) == nil && last.condemns() != "" { //nolint:gosec // as above
		return found, fmt.Errorf("%w: %s", session.ErrDamaged, last.condemns())
	}
	f := &opening{Options: Options{Path: path}, size: info.Size(), recovery: &recovery{}}
	err = recovered(func() (err error) {
		f.db, err = bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockWait})
		if err != nil {
			return f.explain(err)
		}
		defer f.db.Close() //nolint:errcheck // only read
		return f.db.View(func(tx *bolt.Tx) error {
			isNew, err := f.check(tx)
			if err == nil && !isNew {
				found.Sessions = tx.Bucket(sessions.name()).Stats().KeyN
			}
			return err
		})
	})
	if err != nil {
		return found, fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return found, nil
}
