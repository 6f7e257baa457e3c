package h1

import (
	"bufio"
	"errors"
	"io"
	"net/http/httputil"
	"strings"
	"testing"
	"testing/iotest"
)

func TestChunks(t *testing.T) {
	f := func(name, wire, want string, wantErr error) {
		t.Helper()
		for how, in := range map[string]io.Reader{
			"at once": strings.NewReader(wire), "byte by byte": iotest.OneByteReader(strings.NewReader(wire)),
			"with its end": iotest.DataErrReader(strings.NewReader(wire)),
		} {
			got, err := io.ReadAll(&chunks{in: bufio.NewReader(in)})
			if string(got) != want || !errors.Is(err, wantErr) {
				t.Errorf("%s, %s: %q, %v; want %q, %v", name, how, got, err, want, wantErr)
			}
		}
	}
	long := strings.Repeat("x", maxTrailer)
	f("one", "5\r\nhello\r\n0\r\n\r\n", "hello", nil)
	f("several", "1\r\na\r\n2\r\nbc\r\n00b\r\ndefghijklmn\r\n000\r\n\r\n", "abcdefghijklmn", nil)
	f("large digits", "A\r\n0123456789\r\n0\r\n\r\n", "0123456789", nil)
	f("no chunk", "0\r\n\r\n", "", nil)
	f("extensions", "1;a=b\r\nx\r\n1 ; c\r\ny\r\n0;d\r\n\r\n", "xy", nil)
	f("trailers", "1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", "x", nil)
	f("a line feed alone", "1\nx\r\n0\r\n\r\n", "", errChunk)
	f("a carriage return alone", "1;\r\r\nx\r\n0\r\n\r\n", "", errChunk)
	f("a line feed alone after a chunk", "1\r\nx\n0\r\n\r\n", "x", errChunk)
	f("what follows stays", "1\r\nx\r\n0\r\n\r\nHTTP/1.1", "x", nil)
	f("nothing", "", "", io.ErrUnexpectedEOF)
	f("half a chunk", "5\r\nhel", "hel", io.ErrUnexpectedEOF)
	f("half a line", "5", "", io.ErrUnexpectedEOF)
	f("no end", "1\r\nx\r\n", "x", io.ErrUnexpectedEOF)
	f("half an end", "1\r\nx\r\n0\r\n", "x", io.ErrUnexpectedEOF)
	f("too long a chunk", "1\r\nxy\r\n0\r\n\r\n", "x", errChunk)
	f("no number", "\r\nx\r\n", "", errChunk)
	f("not a number", "zz\r\nx", "", errChunk)
	f("signed", "-1\r\nx", "", errChunk)
	f("prefixed", "0x1\r\nx", "", errChunk)
	f("too large", "1000000000000000\r\nx", "", errChunk)
	f("a long line", "1;"+long[:maxLine]+"\r\nx", "", errChunk)
	f("long trailers", "0\r\nA: "+long+"\r\n\r\n", "", errChunk)
}

// TestChunksGiveWhatHasCome reads pieces of a body as they come in: each gives all that is whole or begun, and a read
// never waits once it has something.
func TestChunksGiveWhatHasCome(t *testing.T) {
	steps := []struct{ comes, gives string }{
		{"6\r\nevent1\r\n6\r\neve", "event1eve"}, {"nt2\r", "nt2"}, {"\n6", ""}, {"\r\nevent3\r\n", "event3"},
		{"2\r\nab\r\n1\r\nc\r\n0\r", "abc"}, {"\n", ""}, {"\r\n", ""},
	}
	from, to := io.Pipe()
	given := make(chan string)
	go func() {
		defer close(given)
		c := &chunks{in: bufio.NewReader(from)}
		for p := make([]byte, 100); ; {
			n, err := c.Read(p)
			if err != nil {
				if !errors.Is(err, io.EOF) || n > 0 {
					t.Errorf("%d bytes, %v", n, err)
				}
				return
			}
			given <- string(p[:n])
		}
	}()
	for _, s := range steps {
		if _, err := io.WriteString(to, s.comes); err != nil {
			t.Fatal(err)
		}
		if s.gives == "" {
			continue
		}
		if got := <-given; got != s.gives {
			t.Errorf("%q gives %q, want %q", s.comes, got, s.gives)
		}
	}
	if more, open := <-given; open {
		t.Errorf("at the end %q", more)
	}
}

// FuzzChunks holds the reader to net/http's: where both take a body, they take it alike; what ours takes, theirs does.
func FuzzChunks(f *testing.F) {
	f.Add("5\r\nhello\r\n0\r\n\r\n", 3)
	f.Add("1;a\r\nx\r\n0\r\nA: b\r\n\r\n", 1)
	f.Fuzz(func(t *testing.T, wire string, piece int) {
		ours := bufio.NewReader(strings.NewReader(wire))
		c := &chunks{in: ours}
		var got strings.Builder
		_, err := io.CopyBuffer(&got, struct{ io.Reader }{c}, make([]byte, max(1, piece%64)))
		want, theirs := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(wire)))
		if err != nil {
			return
		}
		if theirs != nil || got.String() != string(want) {
			t.Errorf("%q: %q; net/http: %q, %v", wire, got.String(), want, theirs)
		}
	})
}
