package assemble

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// State is what a Reader knows of answers that consist of parts, some of which are calls.
type State struct {
	Hidden  func(tool string) bool
	Parts   []Part // of this answer
	Usage   []byte // of this answer
	Used    []byte // usage of the earlier answers
	Answers int    // number of earlier answers

	Own       int  // calls of this answer that the client has to answer
	Concealed int  // calls of hidden tools in this answer
	Forgot    bool // Parts are not kept any more
	Framed    bool // this answer is a stream that ended as its framing says

	Numbers  map[int]int // index of each part of this stream, as the client counts; parts that it does not receive have none
	shown    [][]byte    // parts of earlier answers that the client received
	numbered int         // number of parts that have an index for the client, in all answers
	held     int         // bytes of all answers
}

// Part is a part of an answer.
type Part struct {
	Raw   []byte
	Shown []byte        // the part as the client receives it, or nil if the client does not
	Call  *session.Call // the call if it is one of a hidden tool, or nil
}

// partSize is about what a part takes in addition to its text, in bytes.
const partSize = 128

// AddPart adds a part, unless Forget was called.
func (s *State) AddPart(p Part) {
	if s.Forgot {
		return
	}
	s.Grow(partSize + len(p.Raw))
	if p.Call != nil {
		s.Grow(len(p.Call.Arguments))
	}
	s.Parts = append(s.Parts, p)
}

// Grow adds to what Held returns.
func (s *State) Grow(n int) { s.held += n }

// Held returns about how many bytes of the answers are kept, here and by those that got them from Said.
func (s *State) Held() int { return s.held }

// Forget drops all parts and keeps no more of them.
func (s *State) Forget() {
	s.Forgot = true
	s.Parts, s.shown, s.held = nil, nil, 0
}

// PassesUnread reports whether an event that is too long to be read can be passed on: there was no hidden call before it, and its beginning
// names no hidden tool.
func (s *State) PassesUnread(head []byte) bool {
	const longest = 64 // bytes of a name
	if s.Differs() {
		return false
	}
	for word := range bytes.SplitSeq(head, []byte{'"'}) {
		if len(word) > 0 && len(word) <= longest && s.Hidden(string(word)) {
			return false
		}
	}
	return true
}

// MaxUsage is the size of the largest usage report that is added up, in bytes. The time to add two reports is quadratic in their size.
const MaxUsage = 16 << 10

// SetUsage sets the usage of this answer, if v is a usage report of at most MaxUsage bytes.
func (s *State) SetUsage(v rawjson.Value) {
	if v.Kind == rawjson.Object && len(v.Raw) <= MaxUsage {
		s.Usage = bytes.Clone(v.Raw)
	}
}

// NextAnswer starts another answer.
func (s *State) NextAnswer() {
	s.shown = s.Shown()
	s.Used = sumUsage(s.Used, s.Usage)
	s.Parts, s.Usage = nil, nil
	s.Own, s.Concealed, s.Framed = 0, 0, false
	s.Answers++
	clear(s.Numbers)
}

// Shown returns the parts that the client has received.
func (s *State) Shown() [][]byte {
	all := slices.Clip(s.shown)
	for i := range s.Parts {
		if part := s.Parts[i].Shown; part != nil {
			all = append(all, part)
		}
	}
	return all
}

// Ended implements Reader.
func (s *State) Ended() { s.Framed = true }

// Differs reports whether the client receives anything other than this answer unchanged.
func (s *State) Differs() bool { return s.Answers > 0 || s.Concealed > 0 }

// OnlyHidden is Said.OnlyHidden.
func (s *State) OnlyHidden(complete bool) bool { return complete && s.Concealed > 0 && s.Own == 0 }

// TotalUsage returns the sum of the usage of all answers, or nil if upstream did not report the usage of this one.
func (s *State) TotalUsage() []byte {
	if len(s.Usage) == 0 {
		return nil
	}
	return sumUsage(s.Used, s.Usage)
}

// Summary returns what the model said in this answer, except for the message, and the raw parts of that message. If the client receives the
// answer unchanged, nothing needs the message, and there are no parts.
func (s *State) Summary(complete bool) (said dialect.Said, parts [][]byte) {
	said = dialect.Said{Own: s.Own > 0, Complete: complete}
	switch {
	case !s.Differs():
		return said, nil
	case s.Forgot:
		said.Forgotten = s.Concealed
		return said, nil
	}
	for i := range s.Parts {
		part := &s.Parts[i]
		parts = append(parts, part.Raw)
		if part.Call != nil {
			said.Calls = append(said.Calls, *part.Call)
		}
	}
	return said, parts
}

// AssignNumber gives a part of a stream the next index that the client sees.
func (s *State) AssignNumber(index int) {
	s.Grow(partSize)
	s.Numbers[index] = s.numbered
	s.numbered++
}

// TakeBackNumbers undoes AssignNumber for the parts that came last.
func (s *State) TakeBackNumbers(indexes []int) {
	for _, i := range indexes {
		delete(s.Numbers, i)
	}
	s.numbered -= len(indexes)
}

// Renumber sets the index in an event of a part to the one that the client sees. It returns nil if the client does not see
// the part.
func (s *State) Renumber(data []byte, key string, index int) []byte {
	number, ok := s.Numbers[index]
	switch {
	case !ok:
		return nil
	case number == index:
		return data
	}
	return split.WithMember(data, key, Encode(number))
}

// sumUsage adds the numbers of the first usage report to those of the second, at any depth. The result has the members of
// the second. If first is empty, second is returned unchanged.
func sumUsage(first, second []byte) []byte {
	if len(first) == 0 {
		return second
	}
	out := split.FilterMembers(second, func(name string, v *rawjson.Value) bool {
		old := split.Member(rawjson.ValueOf(first), name)
		switch {
		case v.Kind == rawjson.Number && old.Kind == rawjson.Number:
			v.Raw = add(old.Raw, v.Raw)
		case v.Kind == rawjson.Object && old.Kind == rawjson.Object:
			v.Raw = sumUsage(old.Raw, v.Raw)
		}
		return true
	})
	return append(out, '}')
}

// add adds two numbers, exactly if both are integers of at most 18 digits and otherwise as floats. It returns b if the sum is too large.
func add(a, b []byte) []byte {
	x, xErr := strconv.ParseInt(string(a), 10, 64)
	y, yErr := strconv.ParseInt(string(b), 10, 64)
	if xErr == nil && yErr == nil && max(len(a), len(b)) <= 18 {
		return strconv.AppendInt(nil, x+y, 10)
	}
	f, _ := strconv.ParseFloat(string(a), 64)
	g, _ := strconv.ParseFloat(string(b), 64)
	if math.IsInf(f, 0) || math.IsInf(g, 0) || math.IsInf(f+g, 0) {
		return b
	}
	return strconv.AppendFloat(nil, f+g, 'g', -1, 64)
}
