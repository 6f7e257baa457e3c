// Command clients runs real agents and SDKs, installed from npm and PyPI at pinned versions, through the built program, each for 25 steps
// against a strict upstream. It checks every request and answer from outside, and writes the tables of docs/clients.md.
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
	"regexp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// errFailed says that at least one client did not work as it should. What went wrong has been printed.
var errFailed = errors.New("FAILED")

// noClients is the environment variable that lets the gate pass where clients cannot be installed.
const noClients = "DEWPOINT_TEST_NO_CLIENTS"

func run(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("clients", flag.ContinueOnError)
	program := fs.String("dewpoint", "bin/dewpoint", "the program")
	only := fs.String("only", "", "run the clients whose name matches this regular expression")
	page := fs.String("doc", "", "write the tables into this page, whose other rows stay as they are; the page's sections are written too")
	cache := fs.String("cache", "", "folder for installed clients (default: dewpoint-clients in the user's cache folder)")
	byRun := fs.Bool("run", false, "start the clients by 'dewpoint run', those that it knows")
	together := fs.Bool("together", false, "run the clients at the same time through one process; one of each protocol, and one of chat")
	verbose := fs.Bool("v", false, "print what each client said that failed")
	traffic := fs.String("traffic", "", "folder to keep what each client sent and got")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if os.Getenv(noClients) == "1" {
		fmt.Fprintf(out, "clients: NOT TESTED: %s=1 says to go on without clients\n", noClients)
		return nil
	}
	table, err := readTable()
	if err != nil {
		return err
	}
	wanted, err := regexp.Compile("^(?:" + *only + ")")
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	installer, err := newInstaller(*cache, table)
	if err != nil {
		return err
	}
	binary, err := filepath.Abs(*program)
	if err != nil {
		return err
	}
	t := trial{binary: binary, installer: installer, out: out, byRun: *byRun, verbose: *verbose, traffic: *traffic}
	if *together {
		return t.verdictTogether(ctx, table.matching(wanted, false))
	}
	reports := runAll(ctx, t, table.matching(wanted, *byRun))
	if err := errors.Join(publish(*page, table, reports), ctx.Err()); err != nil {
		return err
	}
	return verdict(out, reports)
}

// runAll runs the clients one after the other and prints a line for each.
func runAll(ctx context.Context, t trial, clients []client) []report {
	var reports []report
	for _, c := range clients {
		if ctx.Err() != nil {
			break
		}
		r := t.run(ctx, c)
		r.print(t.out)
		reports = append(reports, r)
	}
	return reports
}

// verdictTogether runs the clients at once and prints a line for each.
func (t trial) verdictTogether(ctx context.Context, clients []client) error {
	reports, err := t.together(ctx, clients)
	for i := range reports {
		reports[i].print(t.out)
	}
	return errors.Join(err, verdict(t.out, reports))
}

// verdict prints the count of the clients in the form of a test runner. Clients that could not be installed are named again.
func verdict(out io.Writer, reports []report) error {
	passed, failed, skipped := 0, 0, 0
	for _, r := range reports {
		switch {
		case r.missing != "":
			skipped++
			fmt.Fprintf(out, "clients: NOT TESTED: %s: %s\n", r.client.Name, r.missing)
		case len(r.problems) > 0:
			failed++
			fmt.Fprintf(out, "clients: FAILED: %s\n", r.client.Name)
		default:
			passed++
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 {
		return errFailed
	}
	return nil
}
