package setup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
)

// Found is what a machine has.
type Found struct {
	Keys    []Key
	Servers []Server
	State   string // where sessions are kept unless another file is named
}

// Defaults returns the answers of a user who asks for nothing.
func Defaults() Answers { return Answers{} }

// Dialogue asks a person.
type Dialogue struct {
	in  *bufio.Scanner
	out io.Writer
}

// NewDialogue returns a dialogue that reads lines from in.
func NewDialogue(in io.Reader, out io.Writer) *Dialogue { return &Dialogue{bufio.NewScanner(in), out} }

// ErrLeft means that the input has ended before the last answer.
var ErrLeft = errors.New("the input ended: nothing was written")

// Ask asks the three questions.
func (d *Dialogue) Ask(f Found) (a Answers, err error) {
	d.tell(f)
	if err := d.askUpstream(f, &a); err != nil {
		return a, err
	}
	if a.Summary, err = d.askSummary(f, a); err != nil {
		return a, err
	}
	fmt.Fprintf(d.out, "\n3. In which file are sessions kept?\n")
	a.State, err = d.line(f.State)
	if a.State == f.State {
		a.State = ""
	}
	return a, err
}

// tell says what was found.
func (d *Dialogue) tell(f Found) {
	for _, k := range f.Keys {
		fmt.Fprintf(d.out, "Found %s in the environment. Its value is neither shown nor written.\n", k.Variable)
	}
	for _, s := range f.Servers {
		fmt.Fprintf(d.out, "Found %s at %s with %s.\n", s.Name, s.BaseURL, listed(s.Models))
	}
	if len(f.Keys)+len(f.Servers) > 0 {
		fmt.Fprintln(d.out)
	}
}

// listed names the first models.
func listed(models []string) string {
	const most = 4
	names := make([]string, 0, most)
	for _, m := range models[:min(len(models), most)] {
		names = append(names, terminal.Name(m))
	}
	text := strings.Join(names, ", ")
	if more := len(models) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (d *Dialogue) askUpstream(f Found, a *Answers) error {
	options := []string{"the agent's own provider (OpenAI, Anthropic, Google), with the key that the agent sends"}
	for _, s := range f.Servers {
		options = append(options, fmt.Sprintf("%s at %s", s.Name, s.BaseURL))
	}
	n, err := d.choose("1. Where do requests go?", append(options, "another address, such as a gateway's"))
	switch {
	case err != nil || n == 0:
		return err
	case n <= len(f.Servers):
		a.Upstream, a.Local = f.Servers[n-1].BaseURL, f.Servers[n-1].Name
		return nil
	}
	a.Upstream, err = d.address()
	return err
}

// address asks for a base URL until it is one.
func (d *Dialogue) address() (string, error) {
	for {
		fmt.Fprintln(d.out, "   Its address, with the version, such as https://gateway.example/v1")
		text, err := d.line("")
		if err != nil {
			return "", err
		}
		if u, err := url.Parse(text); err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil {
			return text, nil
		}
		fmt.Fprintln(d.out, "   That is no address without credentials.")
	}
}

func (d *Dialogue) askSummary(f Found, a Answers) (*Model, error) {
	options := []string{"excerpts of it: no model is called"}
	var models []Model
	for _, k := range f.Keys {
		models = append(models, Model{Name: k.Cheap, BaseURL: k.BaseURL, API: k.API, Key: k.Variable})
	}
	for _, s := range f.Servers {
		models = append(models, Model{Name: s.Models[0], BaseURL: s.BaseURL})
	}
	for _, m := range models {
		options = append(options, "a summary by "+terminal.Name(m.String()))
	}
	n, err := d.choose("\n2. What stands in place of the old part of a history?", append(options, "a summary by another model"))
	switch {
	case err != nil || n == 0:
		return nil, err
	case n <= len(models):
		return &models[n-1], nil
	}
	return d.otherModel(f, a)
}

// otherModel asks for a model at the upstream, or at the address that is given.
func (d *Dialogue) otherModel(f Found, a Answers) (*Model, error) {
	var m Model
	var err error
	fmt.Fprintln(d.out, "   The model's name")
	for m.Name == "" && err == nil {
		m.Name, err = d.line("")
	}
	if err != nil {
		return nil, err
	}
	if m.BaseURL = a.Upstream; m.BaseURL == "" {
		if m.BaseURL, err = d.address(); err != nil {
			return nil, err
		}
	}
	for _, k := range f.Keys {
		if k.BaseURL == m.BaseURL {
			m.API, m.Key = k.API, k.Variable
		}
	}
	return &m, nil
}

// Confirm asks a question that is answered with yes or no. Empty means the given answer.
func (d *Dialogue) Confirm(question string, empty bool) (bool, error) {
	hint := "[Y/n]"
	if !empty {
		hint = "[y/N]"
	}
	for {
		fmt.Fprintf(d.out, "%s %s ", question, hint)
		text, err := d.read()
		if err != nil {
			return false, err
		}
		switch strings.ToLower(text) {
		case "":
			return empty, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}

// choose asks for one of several options and returns its index. Empty means the first.
func (d *Dialogue) choose(question string, options []string) (int, error) {
	fmt.Fprintln(d.out, question)
	for i, o := range options {
		fmt.Fprintf(d.out, "   %d) %s\n", i+1, o)
	}
	for {
		text, err := d.line("1")
		if err != nil {
			return 0, err
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(options) {
			return n - 1, nil
		}
		fmt.Fprintf(d.out, "   Please type a number from 1 to %d.\n", len(options))
	}
}

// line asks for a line. Empty means the default.
func (d *Dialogue) line(byDefault string) (string, error) {
	if byDefault != "" {
		fmt.Fprintf(d.out, "   [%s] ", byDefault)
	} else {
		fmt.Fprint(d.out, "   > ")
	}
	text, err := d.read()
	if text == "" {
		text = byDefault
	}
	return text, err
}

func (d *Dialogue) read() (string, error) {
	if !d.in.Scan() {
		fmt.Fprintln(d.out)
		return "", ErrLeft
	}
	return strings.TrimSpace(d.in.Text()), nil
}
