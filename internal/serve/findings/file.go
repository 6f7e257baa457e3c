package findings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// File is a Sink that appends each message to a file as a line of JSON, creating the file if needed. It reopens the file for each round,
// so that it may be rotated. Replicas may share it.
type File struct{ Path string }

var _ Sink = File{}

// Open implements Sink. If the last line is incomplete, because the disk was full, it ends that line first.
func (f File) Open(context.Context) (Conn, error) {
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
	return fileConn{file}, nil
}

type fileConn struct{ file *os.File }

// Send returns after the fsync.
func (c fileConn) Send(_ context.Context, m *Message) error {
	line, err := json.Marshal(m)
	if err == nil {
		_, err = c.file.Write(append(line, '\n'))
	}
	if err == nil {
		err = c.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write memory.file: %w", err)
	}
	return nil
}

func (c fileConn) Close() { _ = c.file.Close() } // already synced
