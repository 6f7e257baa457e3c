// Package rawjson checks JSON text and slices it without decoding it.
//
// A Scanner goes over the text once and accepts exactly the grammar of RFC 8259 with its interoperable choices: UTF-8
// only (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF), no byte order mark, no control character
// in a string, one value and nothing after it, and no more than a given depth of nesting. Two things that the grammar
// allows are allowed here: duplicate names, and \u escapes of lone surrogates. It allocates nothing on valid text.
//
// Members and Elements go over text that a Scanner has passed before, and check nothing again.
package rawjson
