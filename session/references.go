package session

import (
	"context"
	"fmt"
)

// References returns what the log holds of the messages in a resolved history that refer to items of earlier answers, newest first. It
// reads only the newest entries, see maxLogEntries.
func (r *Registry) References(ctx context.Context, res *Resolution) (payloads [][]byte, err error) {
	h, missing := res.query.History, 0
	for i := range h.Messages {
		if len(h.Messages[i].Refers) > 0 {
			missing++
		}
	}
	var found []Event
	for page, err := range newestPages(ctx, r.store, &res.Thread) {
		if err != nil {
			return nil, fmt.Errorf("read references: %w", err)
		}
		for _, e := range page {
			if e.Pos > 0 && h.Covers(e.Pos, e.Chain) && len(h.Message(e.Pos).Refers) > 0 {
				found = append(found, e)
			}
		}
		if len(found) >= missing {
			break
		}
	}
	if err := ReadContent(ctx, r.store, found); err != nil {
		return nil, err
	}
	for i := range found {
		payloads = append(payloads, found[i].Payload)
	}
	return payloads, nil
}
