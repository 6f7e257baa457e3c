package boltstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// recovery is a small file in the directory of the database. It contains what clients cannot send again if the database is lost, and how
// the last starts ended.
//
// As long as the database can be opened, it is authoritative for the secret and the settings: each start and each change copies them into
// the file. Only a new database takes them from the file. Therefore a database that was copied from another machine keeps its own secret,
// and the next start corrects a file that was lost or restored from an older copy.
type recovery struct {
	path string

	copying sync.Mutex // held while the last change of the database is copied

	mu      sync.Mutex // guards the content and the file
	content recoveryContent
	stored  []byte // content of the file, nil if there is no file
}

type recoveryContent struct {
	Format   string            `json:"format,omitempty"` // of the database, empty before it was opened for the first time
	Secret   []byte            `json:"secret,omitempty"`
	Settings map[string][]byte `json:"settings,omitempty"`
	Crashes  int               `json:"unfinished_starts,omitempty"` // successive starts that began to open the database and did not finish, including a running one
	Damage   string            `json:"damage,omitempty"`            // damage that a process has found, so that the next start renames the database
}

// maxCrashes is the number of successive starts that did not finish after which the database counts as damaged.
const maxCrashes = 2

// condemns returns the reason to rename the database without opening it, empty if there is none.
func (c *recoveryContent) condemns() string {
	switch {
	case c.Damage != "":
		return "found by the last process: " + c.Damage
	case c.Crashes >= maxCrashes:
		return fmt.Sprintf("%d starts in a row ended while they opened it", c.Crashes)
	}
	return ""
}

// readRecovery reads the file. If it cannot be decoded, readRecovery renames it and calls Options.Warn.
func readRecovery(o *Options) (*recovery, error) {
	r := &recovery{path: o.Path + ".recovery"}
	b, err := os.ReadFile(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &r.content); err != nil {
		r.content = recoveryContent{}
		return r, setAside(o, r.path, "the recovery file of the store is damaged: it was renamed, and is written again from the database", err)
	}
	r.stored = b
	return r, nil
}

// change changes the content, and writes the file if that makes a difference. A file without content is removed.
func (r *recovery) change(change func(*recoveryContent)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.content)
	b, err := json.MarshalIndent(r.content, "", "  ") //nolint:gosec // the file contains the secret, like the database: only its owner can read it
	if err != nil || bytes.Equal(b, r.stored) {
		return err
	}
	if string(b) == "{}" {
		if err := os.Remove(r.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		r.stored = nil
		return nil
	}
	if err := replaceFile(r.path, b); err != nil {
		return fmt.Errorf("write %s: %w", r.path, err)
	}
	r.stored = b
	return nil
}

// replaceFile writes a file that only its owner can read. After a crash it has either its old content or the new one.
func replaceFile(path string, content []byte) error {
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // in the same folder as the file that the operator names
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}

// restore writes the secret to a database that has none, and the settings to a new database. If another database lacks a setting, the
// setting was deleted.
func (c *recoveryContent) restore(tx *bolt.Tx, isNew bool) (err error) {
	m := tx.Bucket(meta.name())
	if len(c.Secret) > 0 && m.Get([]byte(secretName)) == nil {
		err = m.Put([]byte(secretName), c.Secret)
	}
	if !isNew {
		return err
	}
	for name, value := range c.Settings {
		err = errors.Join(err, m.Put([]byte(setting+name), value))
	}
	return err
}

// copyFrom copies the secret and the settings of the database.
func (c *recoveryContent) copyFrom(tx *bolt.Tx) {
	c.Format, c.Secret, c.Settings = format, bytes.Clone(tx.Bucket(meta.name()).Get([]byte(secretName))), settings(tx)
}

// updateRecovery copies the secret and the settings into the recovery file after a change has been committed. If the file cannot be written, the
// database still has them, and the next start tries again.
func (s *Store) updateRecovery() {
	s.recovery.copying.Lock()
	defer s.recovery.copying.Unlock()
	var now recoveryContent
	err := s.view(func(tx *bolt.Tx) error {
		now.copyFrom(tx)
		return nil
	})
	if err != nil {
		return
	}
	_ = s.recovery.change(func(c *recoveryContent) { c.Secret, c.Settings = now.Secret, now.Settings })
}
