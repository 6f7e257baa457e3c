package chat_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"reflect"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func TestRead(t *testing.T) {
	f := func(raw string, want session.Content) {
		t.Helper()
		got, err := chat.New(chat.Options{}).Read([]byte(raw))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v, %v\nwant %+v", raw, got, err, want)
		}
	}
	f(`{"role":"user","content":"a\n\u00e9","name":"bob"}`, session.Content{Role: "user", Text: "a\né", Name: "bob"})
	f(`{"role":"user","content":[{"type":"text","text":"a"},{"text":"b","type":"text"},"c",{"type":"refusal","refusal":"no"}]}`,
		session.Content{Role: "user", Text: "a\nb\nc\nno"})
	f(`{"role":"user","content":null}`, session.Content{Role: "user"})
	f(`{"role":"user","content":{"type":"text"}}`, session.Content{Role: "user"})
	f(`{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"r"}]}`, session.Content{Role: "tool", Text: "r", Result: "c"})
	f(`{"role":"function","name":"fn","content":"r"}`, session.Content{Role: "function", Text: "r", Result: "fn", Name: "fn"})
	f(`{"role":"assistant","content":"t","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"a\":1}"}},
		{"id":"2","type":"custom","custom":{"name":"g","input":"in"}},{"id":"3","function":{"name":"h","arguments":{"a":1}}},{}]}`,
		session.Content{Role: "assistant", Text: "t", Calls: []session.Call{
			{ID: "1", Name: "f", Arguments: `{"a":1}`}, {ID: "2", Name: "g", Arguments: "in"}, {ID: "3", Name: "h", Arguments: `{"a":1}`}, {}}})
	f(`{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`,
		session.Content{Role: "assistant", Calls: []session.Call{{ID: "f", Name: "f", Arguments: "{}"}}})
	f(`{"role":"assistant","reasoning_content":"r","thinking_blocks":[{"thinking":"no"}]}`, session.Content{Role: "assistant", Reasoning: "r"})
	f(`{"role":"assistant","reasoning":"r"}`, session.Content{Role: "assistant", Reasoning: "r"})
	f(`{"role":"assistant","thinking_blocks":[{"thinking":"a"},{"data":"x"},{"thinking":"b"}]}`, session.Content{Role: "assistant", Reasoning: "a\nb"})
	f(`{"role":"assistant","reasoning_details":[{"text":"a"},{"summary":"b"}]}`, session.Content{Role: "assistant", Reasoning: "a\nb"})
	f(`{"role":"assistant","content":[{"type":"thinking","thinking":"a"},{"type":"text","text":"b"}]}`,
		session.Content{Role: "assistant", Text: "b", Reasoning: "a"})
	for _, raw := range []string{``, `[]`, `{"role":"user"`, "{\"role\":\"\xff\"}"} {
		if _, err := chat.New(chat.Options{}).Read([]byte(raw)); err == nil {
			t.Errorf("%q is read", raw)
		}
	}
}

// TestReadFiles checks that parts other than text and images are reported as files.
func TestReadFiles(t *testing.T) {
	d := chat.New(chat.Options{})
	data := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	wav := []byte("RIFF....WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data")
	wav = append(wav, make([]byte, 12*32000-len(wav))...)
	f := func(part string, want session.File) {
		t.Helper()
		raw := `{"role":"user","content":[{"type":"text","text":"see"},` + part + `]}`
		c, err := d.Read([]byte(raw))
		if err != nil || len(c.Files) != 1 || c.Files[0] != want || c.Text != "see" {
			t.Errorf("%.200s\ngot  %+v, %v\nwant %+v", part, c, err, want)
		}
		split, err := d.Split("", []byte(`{"model":"m","messages":[`+raw+`,{"role":"user","content":[{"type":"text","text":"x"}]}]}`))
		if err != nil || !split.Messages[0].Attached || split.Messages[1].Attached {
			t.Errorf("%.200s: not told apart from text, %v", part, err)
		}
	}
	f(`{"type":"file","file":{"filename":"contract.pdf","file_data":"data:application/pdf;base64,`+data(5000)+`"}}`,
		session.File{Kind: "file", Name: "contract.pdf", Format: "application/pdf", Bytes: 5000})
	f(`{"type":"file","file":{"file_data":"data:text\/plain;base64,`+data(50)+`"}}`, session.File{Kind: "file", Format: "text/plain", Bytes: 50})
	f(`{"type":"file","file":{"file_id":"file-abc123"}}`, session.File{Kind: "file", ID: "file-abc123"})
	f(`{"type":"file","file":{"filename":"Notes.MD","file_data":"`+data(300)+`"}}`, session.File{Kind: "file", Name: "Notes.MD", Format: "md", Bytes: 300})
	f(`{"type":"input_audio","input_audio":{"data":"`+base64.StdEncoding.EncodeToString(wav)+`","format":"wav"}}`,
		session.File{Kind: "audio", Format: "wav", Bytes: len(wav), Seconds: 12})
	f(`{"type":"input_audio","input_audio":{"data":"`+data(48000)+`","format":"mp3"}}`, session.File{Kind: "audio", Format: "mp3", Bytes: 48000, Seconds: 3})
	f(`{"type":"audio_url","audio_url":{"url":"https://a.example/b.ogg"}}`, session.File{Kind: "audio"})
	f(`{"type":"video_url","video_url":{"url":"data:video/mp4;base64,`+data(250000)+`"}}`,
		session.File{Kind: "video", Format: "video/mp4", Bytes: 250000, Seconds: 2})
	f(`{"type":"video_url","video_url":"https://a.example/b"}`, session.File{Kind: "video"})
	other := `{"type":"document","source":"one two"}`
	f(other, session.File{Kind: "document", Format: "json", Bytes: len(other)})
	other = `{"type":"blob","of":"` + data(9000) + `"}`
	f(other, session.File{Kind: "blob", Bytes: len(other)})
	f(`{"type":"file"}`, session.File{Kind: "file"})
	f(`{"type":"file","file":7}`, session.File{Kind: "file"})
}

func TestReadImages(t *testing.T) {
	picture := image.NewPaletted(image.Rect(0, 0, 300, 200), color.Palette{color.Black, color.White})
	var asPNG, asJPEG, asGIF bytes.Buffer
	if png.Encode(&asPNG, picture) != nil || jpeg.Encode(&asJPEG, picture, nil) != nil || gif.Encode(&asGIF, picture, nil) != nil {
		t.Fatal("cannot make pictures")
	}
	// A JPEG with a large metadata segment before its frame header.
	late := append([]byte{0xFF, 0xD8, 0xFF, 0xE1, 0xFF, 0x00}, make([]byte, 0xFF00-2)...)
	late = append(late, asJPEG.Bytes()[2:]...)
	webp := func(chunk string, data ...byte) []byte {
		return append([]byte("RIFF\x00\x00\x00\x00WEBP"+chunk+"\x00\x00\x00\x00"), append(data, make([]byte, 16)...)...)
	}
	f := func(data []byte, width, height int) {
		t.Helper()
		url := "data:image/x;base64," + base64.StdEncoding.EncodeToString(data)
		got, err := chat.New(chat.Options{}).Read([]byte(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + `","detail":"high"}}]}`))
		want := session.Image{Detail: "high", Width: width, Height: height, Bytes: len(data)}
		if err != nil || len(got.Images) != 1 || got.Images[0] != want {
			t.Errorf("got %+v, %v, want %+v", got.Images, err, want)
		}
	}
	f(asPNG.Bytes(), 300, 200)
	f(asGIF.Bytes(), 300, 200)
	f(asJPEG.Bytes(), 300, 200)
	f(late, 300, 200)
	f(webp("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, 0x2c, 0x01, 0xc8, 0x00), 300, 200)
	f(webp("VP8L", 0x2f, 0x2b, 0xc1, 0x31, 0x00), 300, 200)
	f(webp("VP8X", 0, 0, 0, 0, 0x2b, 0x01, 0x00, 0xc7, 0x00, 0x00), 300, 200)
	f(webp("ABCD"), 0, 0)
	for n := range len(late) % 64 {
		f(late[:n], 0, 0)
	}
	f(asJPEG.Bytes()[:30], 0, 0)
	f([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\xff\xff\xff\xff\xff\xff\xff\xff"), 0, 0)
}

func TestReadImageURLs(t *testing.T) {
	f := func(value string, want session.Image) {
		t.Helper()
		got, err := chat.New(chat.Options{}).Read([]byte(`{"role":"user","content":[{"type":"image_url","image_url":` + value + `}]}`))
		if err != nil || len(got.Images) != 1 || got.Images[0] != want {
			t.Errorf("%s: %+v, %v", value, got.Images, err)
		}
	}
	f(`{"url":"https://example.com/a.png","detail":"low"}`, session.Image{Detail: "low"})
	f(`"https://example.com/a.png"`, session.Image{})
	f(`{"url":"data:image\/png;base64,AAAA"}`, session.Image{Bytes: 3})
	f(`{"url":"data:image/png;base64,AAA="}`, session.Image{Bytes: 2})
	f(`{"url":"data:image/png;base64,%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%"}`, session.Image{Bytes: 30})
	f(`{"url":"data:image/png,plain"}`, session.Image{})
	f(`{"url":"data:"}`, session.Image{})
	f(`null`, session.Image{})
}

func TestNote(t *testing.T) {
	d := chat.New(chat.Options{})
	text := "a\n\"<b>\"\\ \x00 é😀"
	note := d.Note(text)
	if want := `{"role":"user","content":"a\n\"<b>\"\\ \u0000 é😀"}`; string(note) != want {
		t.Errorf("got %s", note)
	}
	if c, err := d.Read(note); err != nil || c.Text != text || c.Role != "user" {
		t.Errorf("reads back as %+v, %v", c, err)
	}
	if r, err := d.Split("", bytes.Join([][]byte{[]byte(`{"messages":[`), d.Note("\xff"), []byte(`]}`)}, nil)); err != nil || r.Messages[0].Kind != session.User {
		t.Errorf("a note with invalid UTF-8: %v", err)
	}
	if d.Name() != "chat" {
		t.Error(d.Name())
	}
}
