package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// What is between these lines of a document is made by this command.
const (
	measuredBegin = "<!-- measured: begin -->"
	measuredEnd   = "<!-- measured: end -->"
)

// publish writes tables to out, or into the document at path in the place of those that it has.
func publish(out io.Writer, path, tables string) error {
	if path == "" {
		_, err := io.WriteString(out, tables)
		return err
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	text, err := splice(string(doc), tables)
	if err != nil {
		return fmt.Errorf("publish in %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

func splice(doc, tables string) (string, error) {
	before, rest, begun := strings.Cut(doc, measuredBegin)
	_, after, ended := strings.Cut(rest, measuredEnd)
	if !begun || !ended {
		return "", fmt.Errorf("no place for tables: %s, then %s", measuredBegin, measuredEnd)
	}
	return before + measuredBegin + "\n\n" + strings.TrimSpace(tables) + "\n\n" + measuredEnd + after, nil
}
