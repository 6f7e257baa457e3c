package codec

import "github.com/dewpoint-proxy/dewpoint/session"

// version is the first byte of a place.
const version byte = 1

// Place encodes p.
func Place(p session.Place) []byte {
	w := writer{make([]byte, 0, 16+len(p.Thread)+len(p.Session)+len(p.Encoding))}
	w.version()
	w.string(string(p.Thread))
	w.string(string(p.Session))
	w.int(p.Pos)
	w.int(p.Tokens)
	w.string(p.Encoding)
	return w.b
}

// ParsePlace reads what Place wrote, or ErrCorrupt.
func ParsePlace(b []byte) (session.Place, error) {
	r := reader{b: b}
	r.version()
	p := session.Place{
		Thread:   session.ThreadID(r.string()),
		Session:  session.SessionID(r.string()),
		Pos:      r.int(),
		Tokens:   r.int(),
		Encoding: r.string(),
	}
	if err := r.end(); err != nil {
		return session.Place{}, err
	}
	return p, nil
}
