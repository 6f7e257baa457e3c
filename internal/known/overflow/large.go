package overflow

import "bytes"

// largeWords are words with which servers refuse a request for its size in bytes, or for the number or size of its images and files, in lower
// case. All words of an entry must occur.
var largeWords = [...][]string{
	{"request_too_large"},
	{"entity too large"},
	{"payload", "too large"},
	{"body", "too large"},
	{"request", "size", "exceed"},
	{"exceeds the maximum size"},
	{"exceeds the maximum allowed size"},
	{"too many images"},
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

// IsTooLarge reports whether an upstream says that it refused a request for its size in bytes, or for its images and files, and not for its
// tokens. A 413 may mean that without saying so.
func IsTooLarge(status int, head []byte) bool {
	if status != 400 && status != 413 && status != 422 {
		return false
	}
	lower := bytes.ToLower(head)
	for _, words := range largeWords {
		all := true
		for _, word := range words {
			all = all && bytes.Contains(lower, []byte(word))
		}
		if all {
			return true
		}
	}
	return false
}
