package store

import "strconv"

// EndOf returns the number of the last entry of a log, from the field that counts them.
func (q *LogQuery) EndOf(field string) uint64 {
	n, _ := strconv.ParseUint(field, 10, 64) // 0 if it has none
	return n
}

// Walk reads a page of a log that has the entries from lost+1 to end. entry returns one of them, or false if it is missing.
func (q *LogQuery) Walk(lost, end uint64, entry func(uint64) (string, bool)) Page {
	at, limit, left := max(q.At, lost+1), q.Limit, q.Bytes
	if q.Limit < 0 {
		at, limit = min(q.At, end), max(-q.Limit, q.Limit) // the smallest int has no positive counterpart
		if limit < 0 {
			limit = int(^uint(0) >> 1)
		}
	}
	page := Page{End: end, First: at}
	for ; limit > 0 && at > lost && at <= end && left > 0; limit-- {
		text, ok := entry(at)
		if !ok {
			break
		}
		page.Entries = append(page.Entries, text)
		left -= len(text)
		if q.Limit < 0 {
			at--
		} else {
			at++
		}
	}
	return page
}
