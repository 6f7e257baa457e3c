package tokenize

import (
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Tokens of a message's framing. The first two are from OpenAI's cookbook ("How to count tokens with tiktoken"). The framing
// of a tool call is not published; 8 is the most that was observed.
const (
	messageOverhead = 3
	nameOverhead    = 1
	callOverhead    = 8
)

// Message returns the number of tokens that a message costs in a request: its framing, role, name, text, reasoning, tool
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

// estimate returns a deliberately high estimate of the tokens in a number of bytes: one per three bytes, rounded up. Prose has
// about 4 bytes per token and code 3.5.
func estimate(bytes int) int { return (bytes + 2) / 3 }

// The cost of files is not published, or differs by model. These are estimates by type and size, which Calibration corrects: a PDF
// page has about 50 kB and costs 1500 tokens (its text and its image), a second of audio costs 10 (OpenAI) to 32 (Gemini) tokens,
// and a second of video 300.
const (
	bytesPerToken = 32 // of a PDF or an unknown type
	pageTokens    = 1500
	audioTokens   = 25 // per second
	videoTokens   = 300

	// The size of a file stored elsewhere is unknown.
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
	case isText(f.Format):
		return estimate(f.Bytes)
	case f.Kind == session.FileDocument:
		return max(f.Bytes/bytesPerToken, pageTokens)
	}
	return f.Bytes/bytesPerToken + 1
}

// isText reports whether a format, a media type or a file extension, is text.
func isText(format string) bool {
	kinds := []string{
		"txt", "md", "csv", "tsv", "json", "jsonl", "xml", "yaml", "yml", "html", "htm", "log", "go", "py", "js", "ts", "java", "c", "sh",
		"sql", "javascript",
	}
	kind := strings.TrimPrefix(strings.TrimPrefix(format, "application/"), "x-")
	return strings.HasPrefix(format, "text/") || slices.Contains(kinds, kind)
}

// OpenAI's tile rule for images ("Images and vision", calculating costs): the image is scaled to fit 2048 by 2048, then its
// shorter side to 768, and costs a base and a price for each tile of 512 by 512 pixels.
const (
	imageBase    = 85
	imageTile    = 170
	imageUnknown = imageBase + 4*imageTile // the cost of 1024 by 1024 pixels

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
	width, height := float64(image.Width), float64(image.Height)
	shrink := min(1, longestSide/max(width, height))
	width, height = width*shrink, height*shrink
	shrink = min(1, shorterSide/min(width, height))
	return imageBase + imageTile*tilesAlong(width*shrink)*tilesAlong(height*shrink)
}

// tilesAlong returns the number of tiles along a side, whose length is rounded to whole pixels.
func tilesAlong(length float64) int {
	pixels := max(1, int(length+0.5))
	return (pixels + tileSide - 1) / tileSide
}
