package bench

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// setting is how a Dewpoint is started.
type setting struct {
	Name      string
	Upstream  string // the mock's address
	Dir       string // a folder of its own
	Redis     string // address; empty: the embedded store
	Condenser string // its type; empty: llm
	Waits     bool   // its history is condensed as it grows, by a summariser that is slow
	InFlight  string // limits.bytes_in_flight; empty: as much as 64 connections of the largest bodies take
}

// startDewpoint starts the binary. Its condenser condenses on request only: no limit is ever reached.
func startDewpoint(binary string, s setting) (*Target, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("start dewpoint: %w", err)
	}
	file := filepath.Join(s.Dir, "dewpoint.yaml")
	if err := os.WriteFile(file, []byte(s.config()), 0o600); err != nil {
		return nil, fmt.Errorf("start dewpoint: %w", err)
	}
	p, err := start(program{Args: []string{binary, "--config", file}, Dir: s.Dir, Stop: syscall.SIGINT})
	if err != nil {
		return nil, err
	}
	at, err := p.serving()
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return &Target{Name: s.Name, Addr: at.Listen, path: chatPath, proc: p, admin: at.Admin}, nil
}

func (s *setting) config() string {
	store := "{type: embedded, path: " + filepath.Join(s.Dir, "dewpoint.db") + "}"
	if s.Redis != "" {
		store = "{type: redis, redis: {addrs: [" + `"` + s.Redis + `"` + "]}}"
	}
	limits := "{bytes_in_flight: 2GiB}"
	if s.InFlight != "" {
		limits = "{bytes_in_flight: " + s.InFlight + ", max_body: 8MiB}"
	}
	condenser := "{type: " + cmp.Or(s.Condenser, "llm") + ", max_size: 1000000, max_tokens: 0.75, keep_first: 2}"
	if s.Waits {
		condenser = fmt.Sprintf("{type: llm, llm_config: slow, max_size: 1000000, max_tokens: %d, min_tokens: 0}\nllms: {slow: {model: %s, timeout: 10m}}", waitsLimit, slowModel)
	}
	return `listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0}
upstream: {base_url: http://` + s.Upstream + `/v1}
store: ` + store + `
models:
  ` + Model + `: {context_window: 1000000000, max_output: 4096, encoding: o200k_base}
condenser: ` + condenser + `
limits: ` + limits + `
`
}
