package ui

// DiffLine is a line of the difference between two records.
type DiffLine struct {
	Sign string // "+" new, "−" gone, " " the same
	Text string
	Skip int // the same lines that are left out here
}

const (
	maxDiffLines = 400 // longer records are compared line by line without looking for moves
	diffContext  = 2   // unchanged lines shown around a change
	diffBytes    = 60 << 10
)

// diff compares two lists of lines: what is common is found by the longest common subsequence.
func diff(a, b []string) []DiffLine {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out []DiffLine
	same := func(lines []string) {
		for _, l := range lines {
			out = append(out, DiffLine{Sign: " ", Text: l})
		}
	}
	same(a[:head])
	out = append(out, changed(a[head:len(a)-tail], b[head:len(b)-tail])...)
	same(a[len(a)-tail:])
	return shorten(out)
}

// changed compares the middle of two lists.
func changed(a, b []string) (out []DiffLine) {
	if len(a) > maxDiffLines || len(b) > maxDiffLines {
		for _, l := range a {
			out = append(out, DiffLine{Sign: "−", Text: l})
		}
		for _, l := range b {
			out = append(out, DiffLine{Sign: "+", Text: l})
		}
		return out
	}
	common := make([][]int, len(a)+1) // common[i][j]: length of the longest common subsequence of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, DiffLine{Sign: " ", Text: a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out = append(out, DiffLine{Sign: "−", Text: a[i]})
			i++
		default:
			out = append(out, DiffLine{Sign: "+", Text: b[j]})
			j++
		}
	}
	return out
}

// shorten leaves out unchanged lines far from a change, makes the others visible, and bounds the whole.
func shorten(all []DiffLine) (out []DiffLine) {
	near := make([]bool, len(all))
	for i := range all {
		if all[i].Sign != " " {
			for j := max(0, i-diffContext); j < min(len(all), i+diffContext+1); j++ {
				near[j] = true
			}
		}
	}
	left := diffBytes
	for i := range all {
		left -= len(all[i].Text) + 60
		if near[i] && left > 0 {
			out = append(out, DiffLine{Sign: all[i].Sign, Text: visible(cut(all[i].Text, foldBytes))})
			continue
		}
		if n := len(out); n > 0 && out[n-1].Skip > 0 {
			out[n-1].Skip++
		} else {
			out = append(out, DiffLine{Sign: " ", Skip: 1})
		}
	}
	return out
}
