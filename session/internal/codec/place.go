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

// ParsePlaceText is ParsePlace of a string, of which the place keeps parts.
func ParsePlaceText(text string) (session.Place, error) {
	r := reader{b: []byte(text)}
	part := func() string {
		n := len(r.bytes(r.uint()))
		end := len(text) - len(r.b)
		return text[end-n : end]
	}
	r.version()
	p := session.Place{Thread: session.ThreadID(part()), Session: session.SessionID(part()), Pos: r.int(), Tokens: r.int(), Encoding: part()}
	if err := r.end(); err != nil {
		return session.Place{}, err
	}
	return p, nil
}
