package rawjson

// scanNumber gives the index after the number at i, or -1.
func scanNumber(data []byte, i int) int {
	if data[i] == '-' {
		i++
	}
	switch {
	case i >= len(data):
		return -1
	case data[i] == '0':
		i++
	default:
		if i = digits(data, i); i < 0 {
			return -1
		}
	}
	if i < len(data) && data[i] == '.' {
		if i = digits(data, i+1); i < 0 {
			return -1
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		return digits(data, i)
	}
	return i
}

// digits gives the index after the run of at least one digit at i, or -1.
func digits(data []byte, i int) int {
	from := i
	for i < len(data) && '0' <= data[i] && data[i] <= '9' {
		i++
	}
	if i == from {
		return -1
	}
	return i
}
