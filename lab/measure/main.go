// Command measure makes the figures in docs/: from recorded runs what condensers keep and what they cost, what the proxy
// itself adds to a request, and from a soak what faults do. It also judges the requests that recorded runs lead to.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/lab/bench"
)

const usage = `usage: measure judge|retention|statements|real|grounding|cost|frontier|forwarded|economics|store-size [flags] (FILE|FOLDER)... | bench [flags] | soak [flags]; see docs`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	commands := map[string]func(context.Context, []string, io.Writer) error{
		"judge": judgeRuns, "retention": measureRetention, "real": measureReal, statements: measureStatements, "forwarded": measureForwarded, "grounding": measureGrounding, "cost": measureCost, "frontier": measureFrontier, economics: measureEconomics,
		"bench": measureBench, "soak": measureSoak, "store-size": measureStoreSize,
		relay: func(_ context.Context, upstream []string, out io.Writer) error {
			return bench.ServeRelay(strings.Join(upstream, ""), out)
		},
		bareProxy: func(_ context.Context, upstream []string, out io.Writer) error {
			return bench.ServeBare(strings.Join(upstream, ""), out)
		},
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New(usage)
	}
	return commands[args[0]](ctx, args[1:], out)
}

// runs reads the runs that the rest of a command line names.
func runs(fs *flag.FlagSet) ([]replay.Run, error) {
	paths, err := replay.Paths(fs.Args())
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, errors.New("no recorded runs; " + usage)
	}
	out := make([]replay.Run, len(paths))
	for i, p := range paths {
		if out[i], err = replay.Load(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}
