package app

import (
	"context"
	"errors"
	"fmt"
)

// lifecycle is a stack of clean-ups, each registered where its resource is made, run last in first out.
type lifecycle struct {
	stops []stop
}

type stop struct {
	name string
	fn   func(context.Context) error
}

func (l *lifecycle) onStop(name string, fn func(context.Context) error) {
	l.stops = append(l.stops, stop{name, fn})
}

// stop runs all clean-ups, also after one failed. A second call does nothing.
func (l *lifecycle) stop(ctx context.Context) error {
	var errs []error
	for i := len(l.stops) - 1; i >= 0; i-- {
		if err := l.stops[i].fn(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", l.stops[i].name, err))
		}
	}
	l.stops = nil
	return errors.Join(errs...)
}
