package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/lab/retention"
)

// errNoServer says what a measurement with real models needs.
var errNoServer = errors.New(`nothing was measured: a real model has to write the summaries, and no server was given.
Name it in the environment, and the models on it:
	OPENAI_BASE_URL  a server that speaks Chat Completions, with the /v1, such as https://api.openai.com/v1 or http://127.0.0.1:11434/v1
	OPENAI_API_KEY   your key for it; may be empty for a server of your own
	MODELS           one or several models, with commas between them
as in: OPENAI_BASE_URL=https://api.openai.com/v1 OPENAI_API_KEY=... make real RUNS=FOLDER MODELS=gpt-5-mini
The recorded runs are sent to this server`)

// measureReal asks real models for summaries of recorded runs, and writes a table.
func measureReal(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("real", flag.ContinueOnError)
	o := retention.Real{Prompts: retention.Prompts()}
	models := fs.String("models", "", "models to ask, with commas between them")
	prompt := fs.String("prompt", "", "a `file` with instructions of your own, to be compared with the built-in ones")
	fs.IntVar(&o.Runs, "most", 3, "runs that are measured, at most")
	fs.IntVar(&o.Moments, "moments", 4, "summaries of a run for each prompt and model, at most")
	fs.IntVar(&o.Minimum, "minimum", 20000, "tokens of the shortest history that is summarised")
	fs.Float64Var(&o.Share, "share", 0.2, "budget, as a share of the history's tokens")
	fs.IntVar(&o.Window, "window", 0, "context window of the models, in tokens; 0: 128,000")
	return measureKept(fs, args, func(recorded []replay.Run, counter retention.Counter, doc string) error {
		o.Counter = counter
		o.Endpoint = condense.Endpoint{BaseURL: os.Getenv("OPENAI_BASE_URL"), APIKey: os.Getenv("OPENAI_API_KEY")}
		o.Models = strings.FieldsFunc(*models, func(r rune) bool { return r == ',' || r == ' ' })
		if o.Endpoint.BaseURL == "" || len(o.Models) == 0 {
			return errNoServer
		}
		if *prompt != "" {
			text, err := os.ReadFile(*prompt)
			if err != nil {
				return fmt.Errorf("read prompt: %w", err)
			}
			o.Prompts = append(o.Prompts, retention.Prompt{Name: "`" + *prompt + "`", Type: catalogue.TypeLLM, Text: string(text)})
		}
		o.Summariser = summariser.Caller{Lacks: summariser.NewLacks()}
		all, err := o.Measure(ctx, recorded)
		if err != nil {
			return err
		}
		var table strings.Builder
		retention.WriteSummaries(&table, all)
		return publish(out, measured, doc, table.String())
	})
}
