package logs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is a file that may hold runs.
type File struct {
	Path string
	Name string // what its runs are called by
}

// Find returns the files that arguments name: files, folders with all *.json and *.jsonl below them, and patterns in which ** stands for any
// folders. Each file is found once.
func Find(args []string) ([]File, error) {
	var found []File
	for _, arg := range args {
		files, err := find(arg)
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(found, func(f File) bool {
		again := seen[f.Path]
		seen[f.Path] = true
		return again
	}), nil
}

func find(arg string) ([]File, error) {
	if info, err := os.Stat(arg); err == nil {
		if info.IsDir() {
			return below(arg, func(name string) bool { return isLog(name) })
		}
		return []File{{arg, filepath.Base(arg)}}, nil
	}
	root, pattern, deep := strings.Cut(filepath.ToSlash(arg), "**")
	if deep {
		pattern = strings.TrimLeft(pattern, "/")
		return below(filepath.Clean(root), func(name string) bool {
			ok, err := filepath.Match(pattern, name)
			return err == nil && ok && !isNote(name)
		})
	}
	paths, err := filepath.Glob(arg)
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("there is no file or folder %s", arg)
	}
	return Find(paths)
}

// below returns the files in a folder whose names match.
func below(root string, matches func(name string) bool) (found []File, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !matches(entry.Name()) {
			return err
		}
		name, err := filepath.Rel(root, path)
		found = append(found, File{path, filepath.ToSlash(name)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("search %s: %w", root, err)
	}
	return found, nil
}

func isLog(name string) bool {
	return (strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl")) && !isNote(name)
}

// isNote reports whether a file is Claude Code's note on a sub-agent, next to its log.
func isNote(name string) bool { return strings.HasSuffix(name, ".meta.json") }
