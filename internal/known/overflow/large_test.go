package overflow

import "testing"

// TestReadLarge: refusals for bytes, images and pages, as servers word them, and others that are not.
func TestReadLarge(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`:                           true,
		`{"error":{"message":"messages.12.content.0.image.source.base64: image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes"}}`: true,
		`{"error":{"message":"At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"}}`:    true,
		`{"error":{"message":"Too many images in request. Max is 50.","code":"too_many_images"}}`:                                      true,
		`{"error":{"message":"A maximum of 100 PDF pages may be provided."}}`:                                                          true,
		`{"object":"error","message":"At most 16 image(s) may be provided in one request; You set images to 17 but the limit is 16"}`:  true,
		`{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`:       true,
		`{"error":{"message":"Invalid value: 'image_urls'. Supported values are: 'text' and 'image_url'."}}`:                           false,
		`{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`:                                                   false,
		`{"error":{"message":"max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens"}}`:                      false,
		`{"error":{"message":"messages: at least one message is required"}}`:                                                           false,
	} {
		if large, files := readLarge(400, []byte(text)); (large || files) != want || large && files {
			t.Errorf("large %t, files %t: %s", large, files, text)
		}
	}
	for status, want := range map[int]bool{413: true, 400: true, 429: false, 500: false} {
		if large, _ := readLarge(status, []byte("Request Entity Too Large")); large != want {
			t.Errorf("%d: large %t", status, large)
		}
	}
	if large, files := readLarge(413, nil); large || files {
		t.Error("a 413 alone says nothing")
	}
}
