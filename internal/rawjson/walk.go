package rawjson

import "iter"

// Members goes over the members of an object that a Scanner has passed. Text that is no object has none; on text that
// was never checked it ends at the first defect.
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

// Elements goes over the elements of an array that a Scanner has passed, as Members does over an object's members.
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

// ValueOf makes a Value of text that a Scanner has passed.
func ValueOf(text []byte) Value {
	s := NewScanner(text, MaxDepth)
	return s.Value()
}
