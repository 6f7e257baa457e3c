package codec_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// TestBytes: the stored format does not change. Each field has a different value, so that no two can be swapped.
func TestBytes(t *testing.T) {
	at := func(n int64) time.Time { return time.Unix(0, n).UTC() }
	f := func(what string, got []byte, want string) {
		t.Helper()
		if hex.EncodeToString(got) != want {
			t.Errorf("%s: %x", what, got)
		}
	}
	f("place", codec.Place(session.Place{Thread: "a", Session: "b", Pos: 1, Tokens: 2, Encoding: "c"}), "02026102620204030163")
	f("place of the usual form", codec.Place(session.Place{Thread: "00ff", Session: "1a2b", Pos: 1, Tokens: 2, Encoding: "o200k_base"}), "020500ff051a2b020401")
	f("session", codec.Session(session.Session{ID: "a", Tenant: "b", Key: "c", Threads: []session.ThreadID{"d", "e"}, Created: at(1), Seen: at(2)}), "0a01611201621a0163220164220165290100000000000000310200000000000000")
	f("thread", codec.Thread(session.Thread{
		ID: "a", Session: "b", Tenant: "c", Purpose: "d", Origin: session.Origin{Parent: "e", ForkAt: 1, Follows: "f", Lost: 9}, Len: 2, Head: session.Hash{3}, System: session.Hash{4},
		Seq: 5, Requested: 6, Created: at(7), Seen: at(8), Dialect: "f", Shares: []session.ThreadID{"g", "h"},
	}), "0a01611201621a01632201642a016530013802422003000000000000000000000000000000000000000000000000000000000000004a200400000000"+
		"000000000000000000000000000000000000000000000000000000500558066107000000000000006908000000000000007201667a01668001098a0101678a010168")
	f("savings", codec.Savings(session.Savings{Tokens: 1, NotSent: 2, Rewritten: 3, Cost: session.Cost{
		Calls: 4, Took: 5, Used: session.Usage{Input: 6, Cached: 7, Output: 8}, Nano: 9, Unpriced: "a",
	}}), "08011002180320042a0608061007180830093a01614005")
	f("event", content.Event("t", session.Event{
		Pos: 1, After: 2, Kind: 3, Digest: session.Hash{4}, Chain: session.Hash{5}, Tokens: 6, Time: at(7), Payload: []byte("a"),
	}), "080310011802222004000000000000000000000000000000000000000000000000000000000000002a20050000000000000000000000000000000000"+
		"0000000000000000000000000000300639070000000000000042040a020061")
	f("held events", content.Events("t", []session.Event{
		{Pos: 1, Kind: 2, Digest: session.Hash{3}, Chain: session.Hash{4}, Tokens: 5, Time: at(6), Ref: session.EntryID{Thread: "a", Seq: 7}},
		{Pos: 2, Kind: 8, Digest: session.Hash{9}, Chain: session.Next(session.Hash{4}, session.Hash{9}), Tokens: 10, Time: at(6), Ref: session.EntryID{Thread: "a", Seq: 8}},
	})[0], "08021001222003000000000000000000000000000000000000000000000000000000000000002a20040000000000000000000000000000000000000000"+
		"000000000000000000000030053906000000000000004a016150075a260808100a1a200900000000000000000000000000000000000000000000000000"+
		"000000000000")
	f("condensation", codec.Condensation(session.Condensation{
		ID: session.CondensationID{Thread: "a", Seq: 1}, Base: session.CondensationID{Thread: "b", Seq: 2}, Prefix: 3, Hash: session.Hash{4},
		Hidden:    session.Hidden{Span: session.Hash{5}, Run: session.Hash{6}},
		Forgotten: []session.Range{{From: 7, To: 8}}, ForgottenTokens: 9,
		Trims: []session.Trim{{
			Pos: 10, Head: 11, Tail: 12, Tidy: true, Copies: []session.Copy{{From: 13, To: 14, Source: 15, At: 16}}, Named: true,
		}},
		SummaryTokens: 17, Offset: 18, Stripped: 19, Changed: 35, Provisional: true, Reason: "c", Condenser: "d", Model: "e",
		Before: session.Size{Events: 20, Tokens: 21}, After: session.Size{Events: 22, Tokens: 23}, Time: at(24),
		Addition: session.Addition{Added: 25, Topics: []string{"f", "g"}},
		Making: session.Making{
			Request: "h", Cause: "i", Prompt: "j", Reused: session.Usage{Input: 26, Cached: 27, Output: 28},
			Cost: session.Cost{Calls: 29, Took: 30, Used: session.Usage{Input: 31, Cached: 32, Output: 33}, Nano: 34, Unpriced: "k"},
		},
	}), "0a0161120162180220032a2004000000000000000000000000000000000000000000000000000000000000003204080710083a14080a100b180c2001"+
		"2a08080d100e180f20103001400948115012581360016a01637201647a0168820101658a010408141015920104081610179a0106081f10201821a101"+
		"1800000000000000aa01200500000000000000000000000000000000000000000000000000000000000000b201200600000000000000000000000000"+
		"000000000000000000000000000000000000ba010169c00119ca010166ca010167d201016ad8011de0011eea0106081a101b181cf00122fa01016b800223")
}
