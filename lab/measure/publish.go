package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// measured is the name of a document's tables. Where a document has tables of two commands, the other's have another one.
const measured = "measured"

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
	begin, end := "<!-- "+name+": begin -->", "<!-- "+name+": end -->"
	before, rest, begun := strings.Cut(doc, begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return "", fmt.Errorf("no place for tables: %s, then %s", begin, end)
	}
	return before + begin + "\n\n" + strings.TrimSpace(tables) + "\n\n" + end + after, nil
}
