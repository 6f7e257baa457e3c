package overflow

import (
	"slices"
	"strings"
)

// Evidence says how an overflow was recognised.
type Evidence int

// The values of Evidence.
const (
	Stated   Evidence = iota // in the words of a row
	ByForm                   // by its form: words for the input beside words for too much, or a count above another one
	ByFigure                 // a number of tokens, without a word that it is too much
)

// Limits of what is believed of an overflow that no row states.
const (
	minBelieved = 1000 // tokens: a shorter request is not too long
	maxRatio    = 4    // the largest ratio between a count in the error and ours, either way
	nearRatio   = 2    // the same for an error with a number and no word that it is too much
)

// Believable reports whether the overflow can be what is wrong with a request that has this many tokens by our own count. One that a row states
// always can. One that was recognised by its form is not believed of a short request, or if its figures contradict our count.
func (o Overflow) Believable(ours int) bool {
	within := func(ratio int) bool { return o.Prompt <= ratio*ours && ours <= ratio*o.Prompt }
	switch {
	case o.Evidence == Stated:
		return true
	case ours < minBelieved, o.Limit > maxRatio*ours:
		return false
	case o.Evidence == ByFigure:
		return within(nearRatio)
	}
	return o.Prompt == 0 || within(maxRatio)
}

// maxFormText bounds how much of a text is searched for a form, in bytes. What follows is often the request.
const maxFormText = 1000

// mayHaveForm reports whether the form of an error with this status is looked at. Other failures have other causes.
func (r report) mayHaveForm(status int) bool {
	if status/100 == 2 && r.code >= 400 && r.code < 600 {
		status = r.code
	}
	switch status {
	case 400, 413, 422:
		return true
	}
	return status/100 == 2
}

// form returns the overflow that the texts describe in words which no row has. A text with figures precedes one without, such as a code.
func (r report) form() (c counts, how Evidence, ok bool) {
	if r.field != "" && !slices.Contains(inputFields, r.field) {
		return c, 0, false
	}
	for _, text := range r.texts {
		got, by, is := formOf(formText(text))
		if is && (!ok || c == counts{}) {
			c, how, ok = got, by, true
		}
	}
	return c, how, ok
}

// formText is the part of a folded text that is searched for a form: without what a validator quotes of the request, addresses, and words that
// many errors begin with.
func formText(text string) string {
	for _, echo := range echoes {
		text, _, _ = strings.Cut(text, echo)
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxFormText)], "")
	kept := slices.DeleteFunc(strings.Fields(text), func(word string) bool { return strings.Contains(word, "://") })
	text = strings.ReplaceAll(strings.ToLower(strings.Join(kept, " ")), "_", " ")
	return preambles.Replace(text)
}

// formOf reads a text that was prepared by formText.
func formOf(text string) (c counts, how Evidence, ok bool) {
	tokens := containsAny(text, tokenWords)
	measured := tokens || containsAny(text, measuredWords)
	sent := measured || containsAny(text, sentWords)
	switch {
	case !sent, containsAny(text, otherErrors), containsAny(text, loadErrors):
		return c, 0, false
	case !tokens && containsAny(text, otherUnits), !measured && containsAny(text, otherParts):
		return c, 0, false
	}
	figures := figuresOf(text)
	c = countsOf(figures)
	pair := c.prompt > 0 && c.limit > 0
	if containsAny(text, outputWords) && !(pair && containsAny(text, inputWords)) && !onInput(text, c) {
		return c, 0, false
	}
	excess := containsAny(text, excessWords)
	switch {
	case excess, measured && (pair || containsAny(text, limitWords) && !containsAny(text, parameterErrors)):
		return c, ByForm, true
	case c.prompt > 0 && slices.ContainsFunc(figures, func(f figure) bool { return f.tokens }):
		return c, ByFigure, true
	}
	return c, 0, false
}

// onInput reports whether an error that mentions the length of the answer is about the input as well: it names the input before it says what
// is too much, and if it gives the length of the answer, it mentions the answer later.
func onInput(text string, c counts) bool {
	first := len(text)
	for _, word := range excessWords {
		if at := strings.Index(text, word); at >= 0 {
			first = min(first, at)
		}
	}
	about := text[:first]
	return first < len(text) && containsAny(about, inputWords) && (c.output == 0 || !containsAny(about, outputWords))
}
