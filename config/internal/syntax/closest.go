package syntax

import (
	"strings"
	"unicode"
)

// Closest returns the one of several keys that a misspelt one most likely stands for: the one that Similar returns, or else the only one
// that has it as its first or last word. It is "" if there is none.
func Closest(name string, keys []string) string {
	if key := Similar(name, keys); key != "" || len(name) < 3 {
		return key
	}
	found := ""
	for _, key := range keys {
		if strings.HasPrefix(key, name+"_") || strings.HasSuffix(key, "_"+name) {
			if found != "" {
				return ""
			}
			found = key
		}
	}
	return found
}

// Similar returns the one of several names that is spelt most like a given one, apart from a few wrong letters: maxSize and max-sise are
// similar to max_size. It is "" if none is similar, or if two are equally so.
func Similar(name string, names []string) string {
	given := fold(name)
	if len(given) < 3 || len(given) > 64 {
		return ""
	}
	best, least := "", 1+max(1, len(given)/4)
	for _, one := range names {
		switch d := distance(given, fold(one)); {
		case d < least:
			best, least = one, d
		case d == least:
			best = ""
		}
	}
	return best
}

// fold returns the letters and digits of a name in lower case.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// distance counts the letters that have to be added, removed, replaced or swapped with the next one to make b of a.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
