package boltstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

const (
	lockWait       = time.Second
	defaultPending = 64 << 20
)

// Options configure a store. Only Path is required.
//
// MaxSize is what all records may take, counted with the half empty pages that they stand in. The file levels off at up
// to a half more, because it keeps the pages that a commit replaces until the next ones. Whole threads are deleted, down
// to 15/16 of the cap, by a goroutine of their own, which an append or a condensation that passes the cap does not wait
// for. The newest thread is never deleted, nor what a fork shares before the fork itself.
type Options struct {
	Path       string        // of the file, which is created if it does not exist; its directory must
	TTL        time.Duration // after the last write to a thread, then it is deleted; 0 never
	Content    bool          // keep payloads; otherwise events are kept without them
	Keys       *seal.Keys    // encrypt payloads and summaries; nil: not
	MaxSize    int64         // bytes; above, the threads last written longest ago are deleted; 0 no cap
	MaxPending int           // bytes queued for writing at which appends wait; 0 is 64 MiB
}

func (o Options) validate() error {
	var errs []error
	if o.Path == "" {
		errs = append(errs, errors.New("path: must not be empty"))
	}
	if o.TTL < 0 {
		errs = append(errs, fmt.Errorf("ttl: %v is negative; 0 keeps everything", o.TTL))
	}
	if o.MaxSize < 0 {
		errs = append(errs, fmt.Errorf("max size: %d is negative; 0 is no cap", o.MaxSize))
	}
	if o.MaxPending < 0 {
		errs = append(errs, fmt.Errorf("max pending: %d is negative", o.MaxPending))
	}
	return errors.Join(errs...)
}
