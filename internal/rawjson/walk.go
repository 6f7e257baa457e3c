package rawjson

import "iter"

// Members iterates over the members of an object that has been validated. Any other value has no members. On invalid text
// it stops at the first defect.
func Members(object []byte) iter.Seq2[Key, Value] {
	return func(yield func(Key, Value) bool) {
		s := NewScanner(object, MaxDepth)
		for entered := s.Object(); entered && s.Member(); {
			if v := s.Value(); v.Kind == 0 || !yield(s.key, v) {
				return
			}
		}
	}
}

// Elements iterates over the elements of an array, as Members does over the members of an object.
func Elements(array []byte) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		s := NewScanner(array, MaxDepth)
		for entered := s.Array(); entered && s.Element(); {
			if v := s.Value(); v.Kind == 0 || !yield(v) {
				return
			}
		}
	}
}

// ValueOf returns text that has been validated as a Value.
func ValueOf(text []byte) Value {
	s := NewScanner(text, MaxDepth)
	return s.Value()
}
