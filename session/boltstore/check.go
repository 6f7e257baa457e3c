package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// Condition is the result of Check.
type Condition struct {
	Records map[string]int // by kind; empty if the pages are damaged
	Damages []string       // empty if the file is intact
	More    int            // damages that are not listed
}

// maxDamages is how many damages are listed.
const maxDamages = 50

func (c *Condition) add(err error) {
	if len(c.Damages) == maxDamages {
		c.More++
		return
	}
	c.Damages = append(c.Damages, err.Error())
}

// Check checks a whole file without changing it: first its pages and, if these are intact, also bbolt's own consistency and
// every record. It cannot tell whether encrypted content is intact. It returns an error if the file cannot be opened or is
// in use by a process.
func Check(path string) (Condition, error) {
	c := Condition{Records: map[string]int{}}
	info, err := os.Stat(path)
	if err != nil {
		return c, fmt.Errorf("check store: %w", err)
	}
	if info.Mode().IsRegular() && info.Size() == 0 {
		return c, nil // the next start fills it
	}
	opened := false
	err = readFile(path, func(tx *bolt.Tx, file *os.File) error {
		opened = true
		return c.check(tx, file, info.Size())
	})
	if _, panicked := errors.AsType[*session.PanicError](err); panicked {
		err = fmt.Errorf("%w: bbolt cannot read its pages", errDamaged)
	}
	_, system := errors.AsType[*os.PathError](err)
	if errors.Is(err, errInUse) || system && !opened {
		return c, fmt.Errorf("check store %s: %w", path, err)
	}
	if err != nil {
		c.add(err)
	}
	return c, nil
}

func (c *Condition) check(tx *bolt.Tx, file *os.File, size int64) error {
	if err := checkFormat(tx, size); err != nil {
		return err
	}
	checkTrees(tx, file, true, c.add)
	if len(c.Damages) > 0 {
		return nil // bbolt's own check could end the process
	}
	for err := range tx.Check() {
		c.add(fmt.Errorf("pages: %w", err))
	}
	for _, b := range buckets {
		found := tx.Bucket(b.name())
		if found == nil {
			continue
		}
		kind := b.String()
		err := found.ForEach(func(name, value []byte) error {
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

// checkRecord decodes a record. Its error names the record.
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
		_, err = codec.ParsePlace(value, session.Place{})
	case events, summaries:
		what, err = checkEntry(b, name, value)
	case marked:
		what = fmt.Sprintf("of %q", owner(name))
		if len(value)%len(session.Hash{}) != 0 {
			err = codec.ErrCorrupt
		}
	case accounts:
		_, _, err = parseAccount(value)
	case savings:
		_, err = codec.ParseSavings(value)
	case outbox:
		if _, isNotice := parseNotice(name); !isNotice {
			err = parseNumbers(value, new(int64))
		}
	case meta, unlisted: // any bytes
	}
	if err != nil {
		return fmt.Errorf("record %s: %w", what, err)
	}
	return nil
}

// checkEntry decodes an event or a summary. It does not check encrypted content.
func checkEntry(b bucket, name, value []byte) (what string, err error) {
	thread, rest := session.ThreadID(owner(name)), name[max(0, len(name)-8):]
	if thread == "" || len(rest) != 8 {
		return fmt.Sprintf("%q", name), codec.ErrCorrupt
	}
	seq := binary.BigEndian.Uint64(rest)
	if b == events {
		_, err = codec.Content{}.ParseEvents(thread, value, seq)
	} else {
		_, err = codec.Content{}.ParseText(value, session.Condensation{})
	}
	if _, unknownKey := errors.AsType[*seal.KeyError](err); unknownKey {
		err = nil
	}
	return fmt.Sprintf("%d of thread %q", seq, thread), err
}

// SetAside renames a file, so that the next start creates a new one, and returns its new name. It refuses a file that is no store.
func SetAside(path string, now time.Time) (string, error) {
	if !wasStore(path) {
		return "", fmt.Errorf("%s is not a Dewpoint store; nothing was renamed: if it was one, rename it yourself", path)
	}
	aside := path + ".aside-" + strings.ReplaceAll(now.UTC().Format("20060102T150405.000"), ".", "-")
	if _, err := os.Lstat(aside); err == nil {
		return "", fmt.Errorf("set the store aside: %s exists already", aside)
	}
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("set the store aside: %w", err)
	}
	return aside, nil
}

// wasStore reports whether any page of a file, whatever their size, has the format record of a store, be it of another version. If
// no list of buckets is left that could have it, a meta page is enough.
func wasStore(path string) bool {
	file, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	end, _ := file.Seek(0, io.SeekEnd)
	head := make([]byte, 128<<10)
	_, _ = file.ReadAt(head, 0)
	magic := binary.NativeEndian.AppendUint32(nil, 0xED0CDAED)
	record := append([]byte("format"), strings.TrimRight(format, "0123456789")...) // in a page, the value follows its key
	hasMeta, hasBuckets := bytes.HasPrefix(head[headerSize:], magic), false
	for size := int64(4 << 10); size <= 64<<10; size *= 2 {
		hasMeta = hasMeta || bytes.HasPrefix(head[size+headerSize:], magic)
		p := &pageChecker{file: file, size: size, high: uint64(end / size)} //nolint:gosec // a size
		for id := range p.high {
			page, leaf, count, err := p.read(id)
			if err == nil && leaf && bytes.Contains(page, record) {
				return true
			}
			hasBuckets = hasBuckets || err == nil && leaf && count > 0 && page[headerSize]&bucketElement != 0
		}
	}
	return hasMeta && !hasBuckets
}
