package codec

import (
	"errors"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/pb"
)

// Thread encodes t without its condensations, which are a list of their own.
func Thread(t session.Thread) []byte {
	return marshal(&pb.Thread{
		Id:        string(t.ID),
		Session:   string(t.Session),
		Tenant:    t.Tenant,
		Purpose:   string(t.Purpose),
		Parent:    string(t.Parent),
		ForkAt:    int64(t.ForkAt),
		Len:       int64(t.Len),
		Head:      hashBytes(t.Head),
		System:    hashBytes(t.System),
		Seq:       t.Seq,
		Requested: t.Requested,
		Created:   nanoseconds(t.Created),
		Seen:      nanoseconds(t.Seen),
		Dialect:   t.Dialect,
	})
}

// ParseThread reads what Thread wrote, or gives ErrCorrupt or ErrOld.
func ParseThread(b []byte) (session.Thread, error) {
	var m pb.Thread
	if err := unmarshal(b, &m); err != nil {
		return session.Thread{}, err
	}
	head, headErr := parseHash(m.Head)
	system, systemErr := parseHash(m.System)
	if err := errors.Join(headErr, systemErr); err != nil || m.Id == "" {
		return session.Thread{}, ErrCorrupt
	}
	return session.Thread{
		ID:        session.ThreadID(m.Id),
		Session:   session.SessionID(m.Session),
		Tenant:    m.Tenant,
		Purpose:   session.Purpose(m.Purpose),
		Parent:    session.ThreadID(m.Parent),
		ForkAt:    int(m.ForkAt),
		Len:       int(m.Len),
		Head:      head,
		System:    system,
		Seq:       m.Seq,
		Requested: m.Requested,
		Created:   instant(m.Created),
		Seen:      instant(m.Seen),
		Dialect:   m.Dialect,
	}, nil
}
