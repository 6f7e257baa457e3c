package codec

import (
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/pb"
)

// Session encodes s.
func Session(s session.Session) []byte {
	m := &pb.Session{
		Id:      string(s.ID),
		Tenant:  s.Tenant,
		Key:     s.Key,
		Created: nanoseconds(s.Created),
		Seen:    nanoseconds(s.Seen),
	}
	for _, id := range s.Threads {
		m.Threads = append(m.Threads, string(id))
	}
	return marshal(m)
}

// ParseSession reads what Session wrote, or gives ErrCorrupt or ErrOld.
func ParseSession(b []byte) (session.Session, error) {
	var m pb.Session
	if err := unmarshal(b, &m); err != nil {
		return session.Session{}, err
	}
	if m.Id == "" {
		return session.Session{}, ErrCorrupt
	}
	s := session.Session{
		ID:      session.SessionID(m.Id),
		Tenant:  m.Tenant,
		Key:     m.Key,
		Created: instant(m.Created),
		Seen:    instant(m.Seen),
	}
	for _, id := range m.Threads {
		s.Threads = append(s.Threads, session.ThreadID(id))
	}
	return s, nil
}
