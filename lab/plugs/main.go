// Command plugs plays recorded runs through real gateways that ask Dewpoint for a condensed history, LiteLLM and Portkey's, and through Dewpoint as
// a proxy, against the same upstream. At each step both must forward the same history, as JSON values. Then Dewpoint is killed, and requests must
// still pass. It also compares how long a plug and the proxy take.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "plugs:", err)
		os.Exit(1)
	}
}

// errFailed says that a gateway forwarded something else. What it was has been printed.
var errFailed = errors.New("FAILED")

func run(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("plugs", flag.ContinueOnError)
	program := fs.String("dewpoint", "bin/dewpoint", "the program")
	litellm := fs.String("litellm", "", "the program litellm, of litellm[proxy]; empty: LiteLLM is not tried")
	portkey := fs.String("portkey", "", "start-server.js of @portkey-ai/gateway; empty: Portkey's gateway is not tried")
	runs := fs.String("runs", "", "folder of recorded runs")
	api := fs.String("api", "", "the API to try, as \"Messages\"; empty: each that the gateway serves")
	only := fs.String("gateway", "", "the gateway to try; empty: each")
	count := fs.Int("count", 30, "how many of them to play, spread over the folder")
	latency := fs.Bool("latency", false, "compare how long a plug and the proxy take, with the longest run")
	if err := fs.Parse(args); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(*runs, "*.json"))
	if err != nil {
		return fmt.Errorf("list recorded runs: %w", err)
	}
	if len(files) == 0 {
		return fmt.Errorf("there are no recorded runs in %q", *runs)
	}
	binary, err := filepath.Abs(*program)
	if err != nil {
		return err
	}
	if *latency {
		return compareTimes(ctx, binary, files, out)
	}
	failed := false
	for _, g := range gateways(*litellm, *portkey) {
		if *only != "" && g.name != *only {
			continue
		}
		if g.program == "" {
			fmt.Fprintf(out, "plugs: NOT TESTED: %s\n", g.name)
			continue
		}
		if g.program, err = filepath.Abs(g.program); err != nil { // it is started in another folder
			return err
		}
		for _, p := range g.speaks {
			if *api != "" && p.name != *api {
				continue
			}
			same, err := compare(ctx, binary, g, p, spread(files, *count), out)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", g.name, p.name, err)
			}
			failed = failed || !same
		}
	}
	if failed {
		return errFailed
	}
	return nil
}

// spread returns n of the files, at equal distances.
func spread(files []string, n int) (some []string) {
	n = min(n, len(files))
	for i := range n {
		some = append(some, files[i*len(files)/n])
	}
	return some
}
