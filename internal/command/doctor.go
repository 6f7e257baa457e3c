package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/dewpoint-proxy/dewpoint/config/source"
	"github.com/dewpoint-proxy/dewpoint/internal/doctor"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
)

// errFaults is the result of an examination that found a fault.
var errFaults = errors.New("there are faults: each has a line that begins with FAIL")

// runDoctor checks what a proxy with a configuration needs, and prints what it finds.
func runDoctor(ctx context.Context, args []string, out, errs io.Writer) error {
	fs := flags("doctor", errs)
	file := fs.String("config", "", "configuration file (default: the one that serve reads)")
	asJSON := fs.Bool("json", false, "print the findings as JSON")
	if err := parse(fs, args, out); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return usageError{errors.New("dewpoint: doctor takes no arguments; name the configuration with --config")}
	}
	p := doctor.Patient{File: cmp.Or(*file, os.Getenv("DEWPOINT_CONFIG"), defaultFile(os.Getenv)), Getenv: os.Getenv, Ask: http.DefaultTransport}
	p.Home, _ = os.UserHomeDir()
	p.Config, p.Problems = source.Load(source.Input{File: p.File, Env: os.Environ(), Check: app.Check})

	screen := terminal.Of(out, os.Getenv)
	all := []doctor.Finding{}
	doctor.Examine(ctx, p, func(f doctor.Finding) {
		all = append(all, f)
		if !*asJSON {
			fmt.Fprint(out, f.Render(screen))
		}
	})
	if *asJSON {
		text := json.NewEncoder(out)
		text.SetEscapeHTML(false)
		text.SetIndent("", "  ")
		if err := text.Encode(all); err != nil {
			return err
		}
	}
	if doctor.Failed(all) {
		return errFaults
	}
	return nil
}
