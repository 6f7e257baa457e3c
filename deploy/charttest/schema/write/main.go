// Command write writes the chart's values.schema.json.
package main

import (
	"fmt"
	"os"

	"github.com/dewpoint-proxy/dewpoint/deploy/charttest/schema"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "schema:", err)
		os.Exit(1)
	}
}

func write(file string) error {
	text, err := schema.Document()
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644) //nolint:gosec // it is part of the source
}
