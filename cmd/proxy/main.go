// Command proxy is dewpoint by another name: cmd/dewpoint is the same program.
package main

import (
	"os"

	"github.com/dewpoint-proxy/dewpoint/internal/command"
)

func main() { os.Exit(command.Main()) }
