package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dewpoint-proxy/dewpoint/internal/app"
)

// errDamaged: the command has said what is damaged.
var errDamaged = errors.New("the store is damaged: with --renew it is set aside, and the next start begins a new one")

// checkStore says what is damaged in an embedded store's file and, if it is told to, sets a damaged one aside.
func checkStore(args []string, out, errs io.Writer) error {
	fs := flags("check-store", errs)
	renew := fs.Bool("renew", false, "rename a damaged file, so that the next start begins a new one")
	if err := parse(fs, args); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return usageError{fmt.Errorf("dewpoint: check-store takes one file, that of store.path")}
	}
	whole, err := app.CheckStore(fs.Arg(0), *renew, out)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return usageError{err}
	case err != nil || whole || *renew:
		return err
	}
	return errDamaged
}
