package codec

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/pb"
)

// Condensation encodes c without its Seq and its summary text.
func Condensation(c session.Condensation) []byte {
	m := &pb.Condensation{
		Thread:          string(c.ID.Thread),
		BaseThread:      string(c.Base.Thread),
		BaseSeq:         c.Base.Seq,
		Prefix:          int64(c.Prefix),
		Hash:            hashBytes(c.Hash),
		Span:            hashBytes(c.Hidden.Span),
		Run:             hashBytes(c.Hidden.Run),
		ForgottenTokens: int64(c.ForgottenTokens),
		SummaryTokens:   int64(c.SummaryTokens),
		Offset:          int64(c.Offset),
		Stripped:        int64(c.Stripped),
		Provisional:     c.Provisional,
		Cause:           c.Cause,
		Reason:          string(c.Reason),
		Condenser:       c.Condenser,
		Request:         c.Request,
		Model:           c.Model,
		Before:          &pb.Size{Events: int64(c.Before.Events), Tokens: int64(c.Before.Tokens)},
		After:           &pb.Size{Events: int64(c.After.Events), Tokens: int64(c.After.Tokens)},
		Usage:           usageRecord(c.Used),
		Time:            nanoseconds(c.Time),
		Added:           int64(c.Added),
		Topics:          c.Topics,
		Prompt:          c.Prompt,
		Calls:           int64(c.Calls),
		Took:            int64(c.Took),
		Nano:            c.Nano,
		Unpriced:        c.Unpriced,
	}
	if c.Rode != (session.Usage{}) {
		m.Rode = usageRecord(c.Rode)
	}
	for _, r := range c.Forgotten {
		m.Forgotten = append(m.Forgotten, &pb.Range{From: int64(r.From), To: int64(r.To)})
	}
	for _, t := range c.Trims {
		m.Trims = append(m.Trims, trimRecord(t))
	}
	return marshal(m)
}

func parseCondensation(b []byte, seq uint64) (session.Condensation, error) {
	var m pb.Condensation
	if err := unmarshal(b, &m); err != nil {
		return session.Condensation{}, err
	}
	hash, hashErr := parseHash(m.Hash)
	span, spanErr := parseHash(m.Span)
	run, runErr := parseHash(m.Run)
	if err := errors.Join(hashErr, spanErr, runErr); err != nil {
		return session.Condensation{}, err
	}
	c := session.Condensation{
		ID:              session.CondensationID{Thread: session.ThreadID(m.Thread), Seq: seq},
		Base:            session.CondensationID{Thread: session.ThreadID(m.BaseThread), Seq: m.BaseSeq},
		Prefix:          int(m.Prefix),
		Hash:            hash,
		Hidden:          session.Hidden{Span: span, Run: run},
		ForgottenTokens: int(m.ForgottenTokens),
		SummaryTokens:   int(m.SummaryTokens),
		Offset:          int(m.Offset),
		Stripped:        int(m.Stripped),
		Provisional:     m.Provisional,
		Reason:          session.Reason(m.Reason),
		Condenser:       m.Condenser,
		Model:           m.Model,
		Before:          session.Size{Events: int(m.Before.GetEvents()), Tokens: int(m.Before.GetTokens())},
		After:           session.Size{Events: int(m.After.GetEvents()), Tokens: int(m.After.GetTokens())},
		Time:            instant(m.Time),
		Addition:        session.Addition{Added: int(m.Added), Topics: m.Topics},
		Making: session.Making{
			Request: m.Request, Cause: m.Cause, Prompt: m.Prompt, Rode: parseUsage(m.Rode),
			Cost: session.Cost{Calls: int(m.Calls), Took: time.Duration(m.Took), Used: parseUsage(m.Usage), Nano: m.Nano, Unpriced: m.Unpriced},
		},
	}
	for _, r := range m.Forgotten {
		c.Forgotten = append(c.Forgotten, session.Range{From: int(r.From), To: int(r.To)})
	}
	for _, t := range m.Trims {
		c.Trims = append(c.Trims, parseTrim(t))
	}
	return c, nil
}

func usageRecord(u session.Usage) *pb.Usage {
	return &pb.Usage{Input: int64(u.Input), Cached: int64(u.Cached), Output: int64(u.Output)}
}

func parseUsage(u *pb.Usage) session.Usage {
	return session.Usage{Input: int(u.GetInput()), Cached: int(u.GetCached()), Output: int(u.GetOutput())}
}

func trimRecord(t session.Trim) *pb.Trim {
	out := &pb.Trim{Pos: int64(t.Pos), Head: int64(t.Head), Tail: int64(t.Tail), Tidy: t.Tidy, Named: t.Named}
	for _, c := range t.Copies {
		out.Copies = append(out.Copies, &pb.Copy{From: int64(c.From), To: int64(c.To), Source: int64(c.Source), At: int64(c.At)})
	}
	return out
}

func parseTrim(t *pb.Trim) session.Trim {
	out := session.Trim{Pos: int(t.Pos), Head: int(t.Head), Tail: int(t.Tail), Tidy: t.Tidy, Named: t.Named}
	for _, c := range t.Copies {
		out.Copies = append(out.Copies, session.Copy{From: int(c.From), To: int(c.To), Source: int(c.Source), At: int(c.At)})
	}
	return out
}

// Listed appends c to an encoded list of condensations, as "SEQ:LENGTH:BYTES": a form that a Redis script, which alone
// knows the next Seq, can append to as well.
func Listed(list []byte, c session.Condensation) []byte {
	b := Condensation(c)
	list = append(strconv.AppendUint(list, c.ID.Seq, 10), ':')
	list = append(strconv.AppendInt(list, int64(len(b)), 10), ':')
	return append(list, b...)
}

// List encodes a whole list.
func List(condensations []session.Condensation) []byte {
	var list []byte
	for _, c := range condensations {
		list = Listed(list, c)
	}
	return list
}

// SetList gives a thread what its list holds.
func SetList(t *session.Thread, list []byte) error {
	all, err := ParseList(list)
	t.SetListed(all)
	return err
}

// ParseList reads a list, or gives ErrCorrupt or ErrOld.
func ParseList(list []byte) ([]session.Condensation, error) {
	var all []session.Condensation
	for len(list) > 0 {
		c, rest, err := parseListed(list)
		if err != nil {
			return nil, err
		}
		all, list = append(all, c), rest
	}
	return all, nil
}

// parseListed reads the first of a list, and gives the rest.
func parseListed(list []byte) (session.Condensation, []byte, error) {
	seq, rest, err := number(list)
	if err != nil {
		return session.Condensation{}, nil, err
	}
	size, rest, err := number(rest)
	if err != nil || size > uint64(len(rest)) {
		return session.Condensation{}, nil, ErrCorrupt
	}
	c, err := parseCondensation(rest[:size], seq)
	return c, rest[size:], err
}

// Find gives the condensation of that id; without it, one that nothing is sealed for.
func Find(list []session.Condensation, id session.CondensationID) session.Condensation {
	for _, c := range list {
		if c.ID == id {
			return c
		}
	}
	return session.Condensation{}
}

// number reads digits up to a colon.
func number(b []byte) (uint64, []byte, error) {
	digits, rest, ok := bytes.Cut(b, []byte{':'})
	if !ok || len(digits) > 20 {
		return 0, nil, ErrCorrupt
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return 0, nil, ErrCorrupt
	}
	return n, rest, nil
}
