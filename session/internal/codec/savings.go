package codec

import (
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/pb"
)

// Savings encodes what a thread saved.
func Savings(s session.Savings) []byte {
	return marshal(&pb.Savings{
		Tokens: s.Tokens, NotSent: s.NotSent, Rewritten: s.Rewritten,
		Calls: int64(s.Calls), Took: int64(s.Took), Used: usageRecord(s.Used), Nano: s.Nano, Unpriced: s.Unpriced,
	})
}

// ParseSavings reads them; of nothing, zero.
func ParseSavings(b []byte) (session.Savings, error) {
	var m pb.Savings
	if err := unmarshal(b, &m); err != nil {
		return session.Savings{}, err
	}
	return session.Savings{
		Tokens: m.Tokens, NotSent: m.NotSent, Rewritten: m.Rewritten,
		Cost: session.Cost{Calls: int(m.Calls), Took: time.Duration(m.Took), Used: parseUsage(m.Used), Nano: m.Nano, Unpriced: m.Unpriced},
	}, nil
}
