package rawjson

import "iter"

// Members goes over the members of an object that a Scanner has passed. Text that is no object has none; on text that
// was never checked it ends somewhere, without harm.
func Members(object []byte) iter.Seq2[Key, Value] {
	return func(yield func(Key, Value) bool) {
		for i := enter(object, '{'); i < len(object); {
			key, end := valueAt(object, i)
			value, end := valueAt(object, gap(object, end))
			if key.Kind != String || value.Kind == 0 || !yield(Key{Raw: key.Inner(), Escapes: key.Escapes}, value) {
				return
			}
			i = gap(object, end)
		}
	}
}

// Elements goes over the elements of an array that a Scanner has passed, as Members does over an object's members.
func Elements(array []byte) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for i := enter(array, '['); i < len(array); {
			value, end := valueAt(array, i)
			if value.Kind == 0 || !yield(value) {
				return
			}
			i = gap(array, end)
		}
	}
}

// ValueOf makes a Value of text that a Scanner has passed.
func ValueOf(text []byte) Value {
	v, _ := valueAt(text, gap(text, 0))
	return v
}

// enter is the index of the first value in a container.
func enter(data []byte, open byte) int {
	i := gap(data, 0)
	if i >= len(data) || data[i] != open {
		return len(data)
	}
	return gap(data, i+1)
}

// gap goes over white space, commas and colons.
func gap(data []byte, i int) int {
	for i < len(data) && (data[i] <= ' ' || data[i] == ',' || data[i] == ':') {
		i++
	}
	return i
}

// valueAt is the value at i and the index after it; the zero Value if none is there.
func valueAt(data []byte, i int) (Value, int) {
	if i >= len(data) {
		return Value{}, len(data)
	}
	v := Value{Kind: kindOf(data[i])}
	var end int
	switch v.Kind {
	case 0:
		return v, len(data)
	case String:
		end, v.Escapes = closing(data, i+1)
	case Object, Array:
		end = balanced(data, i)
	default:
		end = i + bare(data[i:])
	}
	v.Raw = data[i:end:end]
	return v, end
}

// bare is the length of the number or literal that data begins with.
func bare(data []byte) int {
	for i, c := range data {
		if c <= ' ' || c == ',' || c == ']' || c == '}' {
			return i
		}
	}
	return len(data)
}

// closing is the index after the quote that ends the string whose inside begins at i.
func closing(data []byte, i int) (int, Escapes) {
	escapes := Plain
	for {
		i = plain(data, i)
		switch {
		case i >= len(data):
			return len(data), escapes
		case data[i] == '"':
			return i + 1, escapes
		case data[i] != '\\':
			i++
		default:
			long := Short
			if i+1 < len(data) && (data[i+1] == 'u' || data[i+1] == '/') {
				long = Long
			}
			escapes = max(escapes, long)
			i = min(i+2, len(data))
		}
	}
}

// balanced is the index after the container that begins at i.
func balanced(data []byte, i int) int {
	for depth := 0; i < len(data); {
		switch data[i] {
		case '"':
			i, _ = closing(data, i+1)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if i++; depth == 0 {
			return i
		}
	}
	return len(data)
}
