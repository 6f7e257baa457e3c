package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// What is between these lines of a document is made by this command. Where a document has tables of two, the other's lines have its name.
const (
	measured      = "measured"
	measuredBegin = "<!-- " + measured + ": begin -->"
	measuredEnd   = "<!-- " + measured + ": end -->"
)

// publish writes tables to out, or into the document at path in the place of those that it has between lines of that name.
func publish(out io.Writer, name, path, tables string) error {
	if path == "" {
		_, err := io.WriteString(out, tables)
		return err
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	text, err := splice(string(doc), name, tables)
	if err != nil {
		return fmt.Errorf("publish in %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

func splice(doc, name, tables string) (string, error) {
	begin, end := strings.Replace(measuredBegin, measured, name, 1), strings.Replace(measuredEnd, measured, name, 1)
	before, rest, begun := strings.Cut(doc, begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return "", fmt.Errorf("no place for tables: %s, then %s", begin, end)
	}
	return before + begin + "\n\n" + strings.TrimSpace(tables) + "\n\n" + end + after, nil
}
