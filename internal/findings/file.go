package findings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// File is a Sink that writes a line of JSON for each condensation to the end of a file, which it makes if there is none. It opens it anew for each round, so
// that it may be moved away. Replicas may share it.
type File struct{ Path string }

var _ Sink = File{}

// Open implements Sink. A line that was cut off, when the disk was full, is ended.
func (f File) Open(context.Context) (Line, error) {
	file, err := os.OpenFile(f.Path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open memory.file: %w", err)
	}
	last := []byte{'\n'}
	if size, err := file.Seek(0, io.SeekEnd); err == nil && size > 0 {
		_, err = file.ReadAt(last, size-1)
		if err == nil && last[0] != '\n' {
			_, err = file.WriteString("\n")
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open memory.file: %w", err), file.Close())
		}
	}
	return lines{file}, nil
}

type lines struct{ file *os.File }

// Tell returns after the fsync.
func (l lines) Tell(_ context.Context, t *Told) error {
	line, err := json.Marshal(t)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write memory.file: %w", err)
	}
	return nil
}

func (l lines) Close() { _ = l.file.Close() } // it was synced
