package codec

import "github.com/dewpoint-proxy/dewpoint/session"

// Session encodes s.
func Session(s session.Session) []byte {
	var w writer
	w.version()
	w.string(string(s.ID))
	w.string(s.Tenant)
	w.string(s.Key)
	w.uint(uint64(len(s.Threads)))
	for _, id := range s.Threads {
		w.string(string(id))
	}
	w.time(s.Created)
	w.time(s.Seen)
	return w.b
}

// ParseSession reads what Session wrote, or ErrCorrupt.
func ParseSession(b []byte) (session.Session, error) {
	r := reader{b: b}
	r.version()
	s := session.Session{ID: session.SessionID(r.string()), Tenant: r.string(), Key: r.string()}
	for range r.count() {
		s.Threads = append(s.Threads, session.ThreadID(r.string()))
	}
	s.Created, s.Seen = r.time(), r.time()
	if err := r.end(); err != nil {
		return session.Session{}, err
	}
	return s, nil
}
