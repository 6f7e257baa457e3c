package overflow

import (
	"bytes"
	"slices"
)

// largeWords are words with which servers refuse a request for its size in bytes, in lower case. All words of an entry must occur.
var largeWords = [...][]string{
	{"request_too_large"},
	{"entity too large"},
	{"payload", "too large"},
	{"body", "too large"},
	{"request", "size", "exceed"},
	{"exceeds the maximum size"},
	{"exceeds the maximum allowed size"},
}

// filesWords are those for the number or size of its images and files.
var filesWords = [...][]string{
	{"too many image"},
	{"too many pages"},
	{"image", "exceed"},
	{"images", "maximum"},
	{"images", "at most"},
	{"images", "limit"},
	{"pdf", "pages"},
	{"document", "pages"},
	{"too many files"},
	{"too many attachments"},
}

// readLarge reports whether an upstream says that it refused a request for its size in bytes, or for its images and files, and not for its tokens. A
// 413 may mean that without saying so.
func readLarge(status int, head []byte) (large, files bool) {
	if status != 400 && status != 413 && status != 422 {
		return false, false
	}
	lower := bytes.ToLower(head)
	hasAll := func(words []string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !bytes.Contains(lower, []byte(word)) })
	}
	files = slices.ContainsFunc(filesWords[:], hasAll)
	return !files && slices.ContainsFunc(largeWords[:], hasAll), files
}
