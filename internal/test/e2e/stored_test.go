package e2e

import (
	"bytes"
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// storedText returns the bytes of an embedded store's file, followed by what its compressed payloads say. Payloads in free pages are among them.
func storedText(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.ReadFile(path)
	ok(t, err)
	dictionary, err := os.ReadFile("../../../session/internal/codec/dictionary.txt")
	ok(t, err)
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(1, dictionary), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<20))
	ok(t, err)
	defer decoder.Close()
	all, magic := bytes.Clone(file), []byte{0x28, 0xb5, 0x2f, 0xfd}
	for rest := file; ; rest = rest[1:] {
		at := bytes.Index(rest, magic)
		if at < 0 {
			return all
		}
		rest = rest[at:]
		text, _ := decoder.DecodeAll(rest, nil) // of the frame; what follows it is no frame
		all = append(all, text...)
	}
}
