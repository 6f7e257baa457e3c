package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	running "github.com/dewpoint-proxy/dewpoint/internal/process"
)

// Peer is another proxy to measure beside. In its texts {port} is the port that it is to listen on, {upstream} the mock's
// address and {dir} a folder of its own.
type Peer struct {
	Name    string            `yaml:"name"`
	Command []string          `yaml:"command"`
	Env     []string          `yaml:"env"`
	Path    string            `yaml:"path"` // of chat completions, by default /v1/chat/completions
	Headers map[string]string `yaml:"headers"`
	Files   map[string]string `yaml:"files"` // written into its folder before it starts, by name
}

// LoadPeers reads a file of peers: "peers:", a list.
func LoadPeers(path string) ([]Peer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load peers: %w", err)
	}
	var file struct {
		Peers []Peer `yaml:"peers"`
	}
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&file); err != nil {
		return nil, fmt.Errorf("load peers: %w", err)
	}
	for i, p := range file.Peers {
		if p.Name == "" || len(p.Command) == 0 {
			return nil, fmt.Errorf("load peers: peer %d needs a name and a command", i+1)
		}
	}
	return file.Peers, nil
}

func startPeer(ctx context.Context, p Peer, dir, upstream string) (*Target, error) {
	addr, err := running.FreeAddr()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	filled := strings.NewReplacer("{port}", port, "{upstream}", upstream, "{dir}", dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	for name, text := range p.Files {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(filled.Replace(text)), 0o600); err != nil {
			return nil, fmt.Errorf("start %s: %w", p.Name, err)
		}
	}
	run, err := start(program{Args: all(p.Command, filled.Replace), Env: all(p.Env, filled.Replace), Dir: dir})
	if err != nil {
		return nil, err
	}
	t := &Target{Name: p.Name, Addr: addr, path: p.Path, proc: run}
	if t.path == "" {
		t.path = chatPath
	}
	for _, name := range sorted(p.Headers) {
		t.headers += name + ": " + filled.Replace(p.Headers[name]) + "\r\n"
	}
	return t.awaitServing(ctx)
}

func all(texts []string, change func(string) string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = change(t)
	}
	return out
}

// sorted are the keys of a map, in order.
func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
