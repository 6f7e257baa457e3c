package command

import (
	"context"
	"fmt"
	"io"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
)

// runDemo replays the built-in sample.
func runDemo(ctx context.Context, args []string, out, errs io.Writer) error {
	fs := flags("demo", errs)
	if err := parse(fs, args, out); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return usageError{fmt.Errorf("dewpoint: demo takes no arguments")}
	}
	return demo.Play(ctx, out)
}
