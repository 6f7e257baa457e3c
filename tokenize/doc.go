// Package tokenize counts tokens: byte-pair encoding over the embedded vocabularies o200k_base and cl100k_base, the
// cost of a whole message, and the correction of both by what an upstream says it counted.
//
// The encoder is exact: token for token what tiktoken-go's EncodeOrdinary gives, with one deviation. The contraction
// alternatives are case-insensitive, and case folding makes U+017F (LATIN SMALL LETTER LONG S) an "s"; OpenAI's
// tiktoken knows that, tiktoken-go's regular expression engine does not. Here it is an "s".
//
// Character classes come from the Unicode tables of the Go release (15.0.0 in Go 1.26), as tiktoken-go's do. OpenAI's
// tiktoken has newer ones, so letters that were encoded since can be split otherwise there.
//
// It is linear: splitting looks at every byte a bounded number of times, and merging a piece of n bytes takes
// O(n log n) steps in bounded scratch, whatever the piece.
//
// Nothing here downloads, writes or logs, and nothing is loaded before it is asked for.
package tokenize
