package main

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/dewpoint-proxy/dewpoint/dialect/protocols"
)

//go:embed clients.toml scripts
var files embed.FS

// address is Dewpoint's in the table and the scripts, which are shown to users as they stand. A run puts another one in its place.
const address = "http://127.0.0.1:8080"

// table lists the clients.
type table struct {
	Node    string   // version of Node.js that runs the clients from npm, itself a package of npm
	UV      string   // version of the installer of the clients from PyPI, itself a package of PyPI
	Clients []client `toml:"client"`
}

// client is an agent or an SDK: what is installed, how it is pointed at Dewpoint, and how it is driven. Texts may name {install}, the folder
// that it is installed in, {platform} as npm's packages name it, and {prompt}.
type client struct {
	Name     string
	Kind     string   // agent or sdk
	Registry string   // npm or PyPI
	Packages []string // with their versions, the client's own first
	Python   string   // version of Python that it needs; empty: any
	Protocol string   // as package protocols names it

	// How its user points it. The page shows these as they are.
	Command     string            // what its user types, in the shell
	Environment map[string]string // variables
	Files       map[string]string // by path: ~/ is the home folder, the others are in the project
	Script      string            // of an SDK; the page shows the lines between two marks

	// How it is driven.
	Program   []string          // with its arguments
	Quiet     map[string]string // more variables
	Tool      string            // that the model calls at each step, as a regular expression; Input has its arguments
	Input     string
	End       *call // the call that ends the task, for a client that does not end with the model's text
	Turns     int   // prompts that it is given, one a line, instead of one prompt and steps
	Delegate  *call // how the model starts a sub-agent
	Seals     bool  // the upstream seals reasoning and wants it back
	Uncounted bool  // too little history comes together for a condensation

	Run *byRun // how 'dewpoint run' drives it; nil: it does not know this client

	// What its user should know.
	Sees string
	Off  string // what to switch off in it
	Note string
}

// byRun is a client as 'dewpoint run' starts it. It has the variables and files of the client that do not name Dewpoint's address, and those here.
type byRun struct {
	Program     []string          // with its arguments
	Environment map[string]string // more variables
	Files       map[string]string
}

// call is a call of one of the client's tools. In the input, COMMAND is replaced with a command of the shell, PROMPT with the task of a sub-agent,
// and FINISHED with what the client is to print at the end.
type call struct{ Tool, Input string }

func readTable() (table, error) {
	text, err := files.ReadFile("clients.toml")
	if err != nil {
		return table{}, err
	}
	var t table
	decoder := toml.NewDecoder(strings.NewReader(string(text))).DisallowUnknownFields()
	if err := decoder.Decode(&t); err != nil {
		if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
			return table{}, fmt.Errorf("clients.toml: %s", strict.String())
		}
		return table{}, fmt.Errorf("clients.toml: %w", err)
	}
	for _, c := range t.Clients {
		if err := c.check(); err != nil {
			return table{}, fmt.Errorf("clients.toml: %s: %w", c.Name, err)
		}
	}
	return t, nil
}

// pinned matches a package with an exact version, as npm and PyPI write it.
var pinned = map[string]*regexp.Regexp{
	"npm":  regexp.MustCompile(`^(@[a-z0-9-]+/)?[a-z0-9.-]+@\d+\.\d+\.\d+[a-z0-9.-]*$`),
	"PyPI": regexp.MustCompile(`^[A-Za-z0-9-]+(\[[a-z,]+\])?==\d+\.\d+[a-z0-9.]*$`),
}

func (c client) check() error {
	form, known := pinned[c.Registry]
	if !known {
		return fmt.Errorf("registry is %q", c.Registry)
	}
	for _, p := range c.Packages {
		if !form.MatchString(p) {
			return fmt.Errorf("%s has no exact version", p)
		}
	}
	switch {
	case len(c.Packages) == 0:
		return errors.New("no packages")
	case c.Kind != "agent" && c.Kind != "sdk":
		return fmt.Errorf("kind is %q", c.Kind)
	case protocols.Named(c.Protocol).Name != c.Protocol:
		return fmt.Errorf("protocol is %q", c.Protocol)
	case c.Script == "" && len(c.Program) == 0:
		return errors.New("neither a script nor a program")
	case !strings.Contains(c.pointing(), address):
		return fmt.Errorf("nothing points it at %s", address)
	}
	return nil
}

// version is that of the client's own package.
func (c client) version() string {
	at := strings.LastIndexAny(c.Packages[0], "@=")
	return c.Packages[0][at+1:]
}

// matching returns the clients whose name matches, all or only those that 'dewpoint run' starts.
func (t table) matching(name *regexp.Regexp, byRun bool) []client {
	var out []client
	for _, c := range t.Clients {
		if name.MatchString(c.Name) && (!byRun || c.Run != nil) {
			out = append(out, c)
		}
	}
	return out
}

// platform is this machine's in the names of npm's packages.
func platform() string {
	processor := runtime.GOARCH
	if processor == "amd64" {
		processor = "x64"
	}
	return runtime.GOOS + "-" + processor
}
