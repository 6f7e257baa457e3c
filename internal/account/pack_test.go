package account_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// fill sets every field of a step to a value of its own.
func fill(v reflect.Value, n *int) {
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC)))
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(*n) * int64(time.Millisecond))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case v.Kind() == reflect.String:
		v.SetString(strings.Repeat("x", *n%7+1))
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(int64(*n))
	case v.CanUint():
		v.SetUint(0)
	}
}

func typical() (s account.Step) {
	n := 0
	fill(reflect.ValueOf(&s).Elem(), &n)
	s.Session, s.Thread, s.Request = "", "0123456789abcdef0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	s.Protocol, s.Due, s.Did, s.Whole, s.Split, s.Code, s.Miss = "messages", session.ReasonEconomics, "done", "held_out", session.CauseUser, "client_gone", "some"
	s.Model, s.Agent, s.Version, s.Tenant = "claude-opus-4-5-20251101", "claude-cli", "2.1.104", "team-a"
	s.Made = 3
	return s
}

func TestEveryFieldOfAStepIsPacked(t *testing.T) {
	want := typical()
	got, err := account.Unpack(account.Pack(&want))
	if err != nil || got != want {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
}

func TestNoStepTakesMoreThan200Bytes(t *testing.T) {
	long := strings.Repeat("y", 300)
	largest := account.Step{
		Thread: "0123456789abcdef0123456789abcdef", Request: strings.Repeat("r", 64), Begun: time.UnixMilli(1 << 41), Answer: math.MaxInt,
		Tenant: long, Protocol: long, Model: long, Client: account.Client{Agent: long, Version: long}, Status: math.MaxInt, Code: long,
		Usage:  account.Usage{Usage: session.Usage{Input: math.MaxInt, Cached: math.MaxInt, Output: math.MaxInt, Written: math.MaxInt, WrittenLong: math.MaxInt}},
		Before: session.Size{Events: math.MaxInt, Tokens: math.MaxInt}, After: session.Size{Events: math.MaxInt, Tokens: math.MaxInt},
		Parts: account.Parts{System: math.MaxInt, Tools: math.MaxInt, Head: math.MaxInt, Record: math.MaxInt, Kept: math.MaxInt, New: math.MaxInt},
		Due:   session.Reason(long), Did: long, Whole: long, Made: math.MaxInt, Miss: account.Miss(long), Split: session.Cause(long),
		Charged: math.MaxInt64, Saved: math.MinInt64,
		Times: account.Times{
			Read: math.MaxInt64 / 2, Resolve: math.MaxInt64 / 2, Overhead: math.MaxInt64 / 2, Waited: math.MaxInt64 / 2,
			Upstream: math.MaxInt64 / 2, Answer: math.MaxInt64 / 2, Held: math.MaxInt64 / 2, Whole: math.MaxInt64 / 2,
		},
	}
	unusual := largest
	unusual.Thread = session.ThreadID(strings.Repeat("not hexadecimal", 9))
	usual := typical()
	for name, s := range map[string]account.Step{"largest": largest, "with an unusual thread": unusual, "usual": usual, "empty": {}} {
		packed := account.Pack(&s)
		t.Logf("%s: %d bytes", name, len(packed))
		if len(packed) > account.MaxPacked {
			t.Errorf("%s: %d bytes", name, len(packed))
		}
		if got, err := account.Unpack(packed); err != nil || got.Request != s.Request {
			t.Errorf("%s: %v, request %q", name, err, got.Request)
		}
	}
}

func TestBytesThatAreNoStepAreRefused(t *testing.T) {
	s := typical()
	packed := account.Pack(&s)
	for n := range packed {
		if _, err := account.Unpack(packed[:n]); err == nil {
			t.Errorf("the first %d bytes are read as a step", n)
		}
	}
	packed[0] = 99
	if _, err := account.Unpack(packed); err == nil {
		t.Error("a later version is read")
	}
}

func FuzzUnpack(f *testing.F) {
	s := typical()
	f.Add(account.Pack(&s))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := account.Unpack(b); err == nil && len(account.Pack(&s)) > account.MaxPacked {
			t.Error("what was unpacked takes more room than it may")
		}
	})
}

func TestClientIsReadFromUserAgent(t *testing.T) {
	for header, want := range map[string]account.Client{
		"claude-cli/2.1.104 (external, cli)":              {Agent: "claude-cli", Version: "2.1.104"},
		"codex_cli_rs/0.50.0 (Debian 13.0.0; x86_64) x/1": {Agent: "codex_cli_rs", Version: "0.50.0"},
		"OpenAI/Python 1.99.9":                            {Agent: "openai-python", Version: "1.99.9"},
		"AsyncOpenAI":                                     {Agent: "asyncopenai"},
		"curl/8.5.0":                                      {Agent: "curl", Version: "8.5.0"},
		"":                                                {},
		"<script>alert(1)</script>":                       {},
		"opencode/" + strings.Repeat("9", 40):             {Agent: "opencode"},
		strings.Repeat("a", 99) + "/1":                    {},
	} {
		if got := account.ClientOf(header); got != want {
			t.Errorf("%q: %+v, want %+v", header, got, want)
		}
	}
}

// TestStepsOfTheFirstVersionAreRead checks that records written before the position of an edit was added are read without it.
func TestStepsOfTheFirstVersionAreRead(t *testing.T) {
	want := typical()
	want.SplitAt = 0
	packed := account.Pack(&want)
	old, removed := append([]byte{1}, packed[1:]...), false
	for i := range old { // the first version has no position: one byte less, which is 0
		if i == 0 || old[i] != 0 {
			continue
		}
		shorter := append(append([]byte{}, old[:i]...), old[i+1:]...)
		if got, err := account.Unpack(shorter); err == nil && got == want {
			removed = true
			break
		}
	}
	if !removed {
		t.Error("a record of the first version is not read")
	}
}
