package tokenize

import "github.com/dewpoint-proxy/dewpoint/session"

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
