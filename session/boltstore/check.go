package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// Condition is what Check found in a file.
type Condition struct {
	Records map[string]int // by kind; none are counted where the pages are damaged
	Damages []string       // empty: the file is whole
	More    int            // damages that are not listed
}

// mostListed is how many damages are listed.
const mostListed = 50

func (c *Condition) add(err error) {
	if len(c.Damages) == mostListed {
		c.More++
		return
	}
	c.Damages = append(c.Damages, err.Error())
}

// Check looks at all of a file, and changes nothing. First at its pages; if these are whole, at what bbolt knows of them, and
// at each record. It cannot see whether encrypted content is whole. It fails if there is no file to look at, or if a process
// uses it.
func Check(path string) (Condition, error) {
	c := Condition{Records: map[string]int{}}
	info, err := os.Stat(path)
	if err != nil {
		return c, fmt.Errorf("check store: %w", err)
	}
	opened := false
	err = reading(path, func(tx *bolt.Tx, file *os.File) error {
		opened = true
		return c.look(tx, file, info.Size())
	})
	var system *os.PathError
	switch {
	case errors.Is(err, errInUse), errors.As(err, &system) && !opened:
		return c, fmt.Errorf("check store %s: %w", path, err)
	case err != nil:
		c.add(err)
	}
	return c, nil
}

func (c *Condition) look(tx *bolt.Tx, file *os.File, size int64) error {
	if err := recognise(tx, size); err != nil {
		return err
	}
	if checkTrees(tx, file, true, c.add); len(c.Damages) > 0 {
		return nil // what is below may end the process then
	}
	for err := range tx.Check() {
		c.add(fmt.Errorf("pages: %w", err))
	}
	for _, b := range buckets {
		if tx.Bucket(b.name()) == nil {
			continue
		}
		kind := b.String()
		err := tx.Bucket(b.name()).ForEach(func(name, value []byte) error {
			c.Records[kind]++
			if err := checkRecord(b, name, value); err != nil {
				c.add(fmt.Errorf("%s: %w", kind, err))
			}
			return nil
		})
		if err != nil {
			c.add(fmt.Errorf("%s: %w", kind, err))
		}
	}
	return nil
}

// checkRecord reads a record, and names it if it cannot be read.
func checkRecord(b bucket, name, value []byte) error {
	var err error
	what := fmt.Sprintf("%q", name)
	switch b {
	case threads:
		_, err = parseThread(value)
	case sessions:
		_, err = codec.ParseSession(value)
	case places, traces:
		what = fmt.Sprintf("%x", name)
		_, err = codec.ParsePlace(value)
	case events, summaries:
		what, err = checkEntry(b, name, value)
	case marked:
		if what = fmt.Sprintf("of %q", owner(name)); len(value)%len(session.Hash{}) != 0 {
			err = codec.ErrCorrupt
		}
	case accounts:
		_, _, err = parseAccount(value)
	case savings:
		_, err = codec.ParseSavings(value)
	case outbox:
		if _, is := parseNotice(name); !is {
			err = parseNumbers(value, new(int64))
		}
	case meta, unlisted: // any bytes
	}
	if err != nil {
		return fmt.Errorf("record %s: %w", what, err)
	}
	return nil
}

// checkEntry reads an event or a summary; what is encrypted is taken as it is.
func checkEntry(b bucket, name, value []byte) (what string, err error) {
	thread, rest := owner(name), name[max(0, len(name)-8):]
	if thread == "" || len(rest) != 8 {
		return fmt.Sprintf("%q", name), codec.ErrCorrupt
	}
	seq := binary.BigEndian.Uint64(rest)
	if b == events {
		_, err = codec.Content{}.ParseEvent(thread, value, seq)
	} else {
		_, err = codec.Content{}.ParseText(value, session.Condensation{})
	}
	if _, unknown := errors.AsType[*seal.KeyError](err); unknown {
		err = nil
	}
	return fmt.Sprintf("%d of thread %q", seq, thread), err
}

// SetAside renames a file, so that the next start begins a new one, and gives its new name.
func SetAside(path string, now time.Time) (string, error) {
	aside := path + ".aside-" + strings.ReplaceAll(now.UTC().Format("20060102T150405.000"), ".", "-")
	if _, err := os.Lstat(aside); err == nil {
		return "", fmt.Errorf("set the store aside: %s is there already", aside)
	}
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("set the store aside: %w", err)
	}
	return aside, nil
}
