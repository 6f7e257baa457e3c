package tokenize

import (
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// What a request costs on top of its text. The first three are from OpenAI's cookbook ("How to count tokens with
// tiktoken"); a tool call's framing is not published, and 8 is what its requests come to at most.
const (
	// ReplyPriming is counted once a request: the reply's opening.
	ReplyPriming = 3

	messageOverhead = 3
	nameOverhead    = 1
	callOverhead    = 8
)

// Message is the number of tokens that a message costs in a request: its framing, role, name, text, reasoning, tool
// calls, images and files. It is never 0.
func (e *Encoder) Message(c session.Content) int {
	n := messageOverhead + e.Count(c.Role) + e.Count(c.Text) + e.Count(c.Reasoning)
	if c.Name != "" {
		n += nameOverhead + e.Count(c.Name)
	}
	for _, call := range c.Calls {
		n += callOverhead + e.Count(call.Name) + e.Count(call.Arguments)
	}
	for _, image := range c.Images {
		n += imageTokens(image)
	}
	for _, file := range c.Files {
		n += fileTokens(file)
	}
	return n
}

// Tools is the number of tokens of a request's raw tools array, counted as the JSON text it is. Upstream rewrites it
// more tightly, so this is a little too much; Calibration learns by how much.
func (e *Encoder) Tools(raw []byte) int { return e.CountBytes(raw) }

// estimate is a high guess at the tokens in a number of bytes: one for three, rounded up. Prose has about four bytes a
// token and code three and a half.
func estimate(bytes int) int { return (bytes + 2) / 3 }

// What files cost is not published, or differs by model. These are estimates by type and size, which upstream's usage corrects: a page
// of a PDF takes about 50 kB and 1500 tokens (its text and its image), a second of audio 10 (OpenAI) to 32 (Gemini) tokens, and one
// of video 300.
const (
	pdfToken    = 32 // bytes
	pageTokens  = 1500
	audioTokens = 25 // a second
	videoTokens = 300

	// Of a file that is elsewhere not even the size is known.
	unknownFile  = 2 * pageTokens
	unknownAudio = 60 * audioTokens
	unknownVideo = 30 * videoTokens
)

func fileTokens(f session.File) int {
	switch {
	case f.Kind == session.FileAudio && f.Seconds > 0:
		return f.Seconds * audioTokens
	case f.Kind == session.FileAudio:
		return unknownAudio
	case f.Kind == session.FileVideo && f.Seconds > 0:
		return f.Seconds * videoTokens
	case f.Kind == session.FileVideo:
		return unknownVideo
	case f.Bytes == 0:
		return unknownFile
	case legible(f.Format):
		return estimate(f.Bytes)
	case f.Kind == session.FileDocument:
		return max(f.Bytes/pdfToken, pageTokens)
	}
	return f.Bytes/pdfToken + 1
}

// legible reports whether a format is text, by its media type or the end of a name.
func legible(format string) bool {
	if strings.HasPrefix(format, "text/") {
		return true
	}
	_, name, is := strings.Cut(format, "application/")
	if !is {
		name = format
	}
	switch strings.TrimPrefix(name, "x-") {
	case "txt", "md", "csv", "tsv", "json", "jsonl", "xml", "yaml", "yml", "html", "htm", "log", "go", "py", "js", "ts", "java", "c", "sh",
		"sql", "javascript":
		return true
	}
	return false
}

// OpenAI's tile rule for images ("Images and vision", calculating costs): a base, and so much for each tile of 512
// pixels a side, once the image is scaled into 2048 by 2048 and its shorter side to 768.
const (
	imageBase    = 85
	imageTile    = 170
	imageUnknown = imageBase + 4*imageTile // what a square of 1024 costs

	tileSide    = 512
	longestSide = 2048
	shorterSide = 768
)

func imageTokens(image session.Image) int {
	switch {
	case image.Detail == "low":
		return imageBase
	case image.Width <= 0 || image.Height <= 0:
		return imageUnknown
	}
	return imageBase + imageTile*tiles(float64(image.Width), float64(image.Height))
}

func tiles(width, height float64) int {
	shrink := min(1, longestSide/max(width, height))
	width, height = width*shrink, height*shrink
	shrink = min(1, shorterSide/min(width, height))
	return sides(width*shrink) * sides(height*shrink)
}

// sides is the tiles along a side, which has whole pixels.
func sides(length float64) int {
	pixels := max(1, int(length+0.5))
	return (pixels + tileSide - 1) / tileSide
}
