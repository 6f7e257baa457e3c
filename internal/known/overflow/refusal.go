package overflow

import "bytes"

// Refusal is why an upstream refused a request. The zero value is an answer.
type Refusal struct {
	Status     int       // of the failure, which the body may state in place of an answer
	Overflow   *Overflow // it is too long
	Large      bool      // it is said to be too large in bytes
	Files      bool      // it is said to have too many or too large images or files
	Alternates bool      // its roles do not alternate
	Manages    bool      // the objection mentions the management of the history
	Thinking   bool      // or thinking
	Reasoning  bool      // or reasoning, by this name or another
}

// ReadRefusal looks for a refusal in the first bytes of an answer.
func ReadRefusal(status int, contentType string, head []byte) Refusal {
	var r Refusal
	reported, isError := parseError(status, contentType, head)
	switch {
	case isError:
		r.Status, r.Alternates = reported.failure(status), reported.alternates()
		if over, ok := reported.overflow(status); ok {
			r.Overflow = &over
		}
	case status >= 400:
		r.Status = status
	default:
		return r // it is an answer
	}
	if r.Overflow == nil {
		r.Large, r.Files = readLarge(r.Status, head)
	}
	mentions := func(word string) bool { return r.Objects() && bytes.Contains(head, []byte(word)) }
	r.Manages = mentions("context_management")
	r.Thinking = mentions("thinking")
	r.Reasoning = r.Thinking || mentions("reasoning") || mentions("encrypted")
	return r
}

// Objects reports whether upstream refused the request's content, and not its key, price, address, rate or length.
func (r Refusal) Objects() bool {
	switch r.Status {
	case 401, 402, 403, 404, 405, 407, 408, 413, 429:
		return false
	}
	return r.Status >= 400 && r.Status < 500
}

// NotFound reports whether upstream did not find something, which may be an item that the request refers to.
func (r Refusal) NotFound() bool { return r.Status == 404 }

// MayBeLarge reports whether the request may be too large in bytes, images or files.
func (r Refusal) MayBeLarge() bool { return r.Large || r.Files || r.Status == 413 && r.Overflow == nil }

// MayObject reports whether some servers refuse a request's content with this status: filters with 403 and 413, templates with 500 and 501.
// Those of overload and of gateways say nothing about the content.
func (r Refusal) MayObject() bool {
	switch r.Status {
	case 403, 413, 500, 501:
		return true
	}
	return false
}

// Transient reports whether the failure says nothing about the request, such as a rate limit.
func (r Refusal) Transient() bool {
	failed := r.Status == 500 || r.Status >= 400 && !r.MayObject()
	return failed && r.Overflow == nil && !r.Objects()
}
