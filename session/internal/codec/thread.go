package codec

import "github.com/dewpoint-proxy/dewpoint/session"

// Thread encodes t without its condensations, which are a list of their own.
func Thread(t session.Thread) []byte {
	w := writer{make([]byte, 0, 160+len(t.ID)+len(t.Session)+len(t.Parent))}
	w.version()
	w.string(string(t.ID))
	w.string(string(t.Session))
	w.string(t.Tenant)
	w.string(string(t.Purpose))
	w.string(string(t.Parent))
	w.int(t.ForkAt)
	w.int(t.Len)
	w.hash(t.Head)
	w.hash(t.System)
	w.uint(t.Seq)
	w.time(t.Created)
	w.time(t.Seen)
	w.uint(t.Requested)
	return w.b
}

// ParseThread reads what Thread wrote, or ErrCorrupt.
func ParseThread(b []byte) (session.Thread, error) {
	r := reader{b: b}
	r.version()
	t := session.Thread{
		ID:      session.ThreadID(r.string()),
		Session: session.SessionID(r.string()),
		Tenant:  r.string(),
		Purpose: session.Purpose(r.string()),
		Parent:  session.ThreadID(r.string()),
		ForkAt:  r.int(),
		Len:     r.int(),
		Head:    r.hash(),
		System:  r.hash(),
		Seq:     r.uint(),
		Created: r.time(),
		Seen:    r.time(),

		Requested: r.uint(),
	}
	if err := r.end(); err != nil {
		return session.Thread{}, err
	}
	return t, nil
}
