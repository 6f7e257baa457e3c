package replay

import (
	"bytes"
	"context"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// CheckLog stops the service and checks that the stage's store has the whole history of a played run, in order and byte for byte,
// whatever was condensed, and a record of each condensation.
func (s *Stage) CheckLog(ctx context.Context, r Report) error {
	if err := s.stop(); err != nil {
		return err
	}
	store, err := boltstore.Open(boltstore.Options{Path: s.path, Content: true})
	if err != nil {
		return fmt.Errorf("check log: %w", err)
	}
	defer func() { _ = store.Close() }()
	thread, err := store.Thread(ctx, session.ThreadID(r.Thread))
	if err != nil {
		return fmt.Errorf("check log: %w", err)
	}
	return checkThread(ctx, store, thread, r.last, r.Condensations)
}

// page is the number of events to read at a time.
const page = 500

func checkThread(ctx context.Context, store session.Store, t session.Thread, messages []session.Message, condensations int) error {
	pos, logged := 0, 0
	history := session.NewHistory(session.Hash{}, messages)
	for from := uint64(1); ; from += page {
		events, err := store.Events(ctx, t.ID, from, page)
		if err != nil {
			return fmt.Errorf("check log: %w", err)
		}
		for _, e := range events {
			switch {
			case e.Kind == session.Condensed:
				logged++
			case e.Pos == 0:
			case e.Pos != pos+1 || e.Pos > history.Len() || !bytes.Equal(e.Payload, history.Message(e.Pos).Raw):
				return fmt.Errorf("check log: entry %d is not message %d", e.Seq, pos+1)
			default:
				pos++
			}
		}
		if len(events) < page {
			break
		}
	}
	if pos != history.Len() || logged != condensations {
		return fmt.Errorf("check log: %d of %d messages and %d of %d condensations are logged", pos, history.Len(), logged, condensations)
	}
	return nil
}
