// Command dewpoint is a reverse proxy for OpenAI-compatible APIs and Anthropic's Messages API that condenses long agent histories.
package main

import (
	"os"

	"github.com/dewpoint-proxy/dewpoint/internal/command"
)

func main() { os.Exit(command.Main()) }
