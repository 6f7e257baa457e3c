// Package logs reads the runs of agents from the files in which people have them: the session files of Claude Code and Codex, and lists of
// messages. A file's content says which it is.
package logs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// Unknown is the error for a file that holds none of the known forms.
type Unknown struct{ Reason string }

func (e Unknown) Error() string { return e.Reason }

// Reader reads files one after another. It keeps what it needs to know an answer again, because a resumed session repeats the session that it
// goes on from. It is not safe for concurrent use.
type Reader struct {
	answers map[uint64]bool
}

// NewReader returns a reader.
func NewReader() *Reader { return &Reader{answers: map[uint64]bool{}} }

// maxLine is the longest line that is read, in bytes. Images are the largest content.
const maxLine = 256 << 20

// Read reads a file and hands over its runs. name is what runs are called by. The error is an Unknown if the file holds none of the known
// forms. Lines of a log that cannot be read are left out, and counted; a last line that is half written is not.
func (r *Reader) Read(path, name string, take func(replay.Run) error) (broken int, err error) {
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	out := &output{name: name, take: take, answers: r.answers}
	err = readAll(&lines{from: bufio.NewReaderSize(file, 1<<20)}, out)
	return out.broken, err
}

// readAll reads the lines of a file.
func readAll(from *lines, out *output) error {
	var f form
	for {
		line, err := from.next()
		if errors.Is(err, io.EOF) {
			return finish(f, out)
		}
		if err != nil {
			return err
		}
		valid := json.Valid(line)
		if f == nil && !valid {
			return readWhole(from, line, out)
		}
		if f == nil && valid {
			f = recognise(line, out)
		}
		switch {
		case !valid && !from.ended:
			out.broken++
		case f != nil && valid:
			if err := f.line(line); err != nil {
				return err
			}
		}
	}
}

// readWhole reads a file whose first line is not valid JSON: one document, or lines the first of which is broken.
func readWhole(from *lines, first []byte, out *output) error {
	rest, err := io.ReadAll(io.LimitReader(from.from, maxLine))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	document := slices.Concat(first, []byte("\n"), rest)
	if !json.Valid(document) {
		if out.broken++; readAll(&lines{from: bufio.NewReader(bytes.NewReader(rest))}, out) != nil {
			return errors.New("it is not valid JSON")
		}
		return nil
	}
	f := recognise(document, out)
	if f != nil {
		if err := f.line(document); err != nil {
			return err
		}
	}
	return finish(f, out)
}

func finish(f form, out *output) error {
	if f == nil {
		return Unknown{"it has no messages, and is no log of Claude Code or Codex"}
	}
	if err := f.end(); err != nil {
		return err
	}
	if out.runs == 0 && !out.repeated {
		return Unknown{"it has no answer of a model after a message"}
	}
	return nil
}

// form reads the lines of one form.
type form interface {
	line(line []byte) error
	end() error
}

// recognise returns the form that a value belongs to; nil if the value does not say.
func recognise(value []byte, out *output) form {
	var l struct {
		Type       string
		Payload    json.RawMessage
		SessionID  string `json:"sessionId"`
		LeafUUID   string `json:"leafUuid"`
		Role       string
		Messages   json.RawMessage
		Input      json.RawMessage
		RecordType string `json:"record_type"`
	}
	if value[0] == '[' {
		return &documents{out: out}
	}
	if json.Unmarshal(value, &l) != nil {
		return nil
	}
	switch {
	case isList(l.Messages) || isList(l.Input):
		return &documents{out: out}
	case l.Type != "" && len(l.Payload) > 0, l.RecordType != "":
		return newCodex(out)
	case l.Type != "" && (l.SessionID != "" || l.LeafUUID != ""):
		return newClaude(out)
	case l.Role != "" || l.Type == "message" || l.Type == "function_call":
		return &list{out: out}
	}
	return nil
}

func isList(value json.RawMessage) bool { return len(value) > 0 && value[0] == '[' }

// lines reads lines of JSON.
type lines struct {
	from  *bufio.Reader
	ended bool // the last line was read
}

// next returns the next line that is not empty, without spaces around it.
func (l *lines) next() ([]byte, error) {
	for !l.ended {
		line, err := l.read()
		if errors.Is(err, io.EOF) {
			l.ended = true
		} else if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
	return nil, io.EOF
}

// read reads up to the end of a line. It leaves out what exceeds maxLine, so that the line cannot be read as JSON.
func (l *lines) read() (line []byte, err error) {
	for {
		part, err := l.from.ReadSlice('\n')
		if len(line)+len(part) <= maxLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
