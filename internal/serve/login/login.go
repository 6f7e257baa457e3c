// Package login says how an operating system runs a program whenever its user logs in: by which file, with what in it, and by which commands
// it is started, stopped and asked about. It writes and runs nothing.
package login

import (
	"encoding/xml"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Name is the service's.
const Name = "dewpoint"

// label is the service's name for launchd.
const label = "io.github.dewpoint-proxy.dewpoint"

// Mark is in the first lines of each file. A file without it is somebody else's.
const Mark = "Written by 'dewpoint service install'"

// Session describes who logs in, and what runs then.
type Session struct {
	System  string              // as runtime.GOOS
	Getenv  func(string) string // the user's environment
	User    int                 // the user's id
	Program string              // absolute path
	Args    []string
}

// Plan is how a system runs the program.
type Plan struct {
	Path string // of the file
	Text string // what is in it
	Link string // path of a symbolic link to the file by which the system finds it, "" if it needs none

	Start, Stop, Status [][]string // commands
}

// New returns the plan for a system. The error says what to do on a system without one.
func New(s Session) (Plan, error) {
	words := append([]string{s.Program}, s.Args...)
	for _, w := range words {
		if strings.ContainsAny(w, "\n\r\x00") {
			return Plan{}, fmt.Errorf("%q has a line break, which no file of a service can name", w)
		}
	}
	if s.System == "windows" {
		return Plan{}, fmt.Errorf("on Windows, let the Task Scheduler run it:\n  schtasks /Create /TN Dewpoint /SC ONLOGON /TR \"%s\"\nand remove it with\n"+
			"  schtasks /Delete /TN Dewpoint", strings.ReplaceAll(quoted(words), `"`, `\"`))
	}
	home := s.Getenv("HOME")
	if home == "" {
		return Plan{}, errors.New("there is no home folder: $HOME is not set")
	}
	if s.System == "darwin" {
		return launchd(home, s.User, words)
	}
	return systemd(home, s.Getenv("XDG_CONFIG_HOME"), words), nil
}

// quoted is a command line of Windows.
func quoted(words []string) string {
	var out []string
	for _, w := range words {
		if strings.ContainsAny(w, " \t") {
			w = `"` + w + `"`
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

// unit is a user unit of systemd. A wrong configuration, exit code 2, does not get better by itself.
const unit = `# %s; 'dewpoint service remove' removes it.
[Unit]
Description=Dewpoint condenses long agent histories
Documentation=https://github.com/dewpoint-proxy/dewpoint

[Service]
ExecStart=%s
ExecReload=/bin/sh -c 'kill -HUP $MAINPID'
Restart=on-failure
RestartSec=2
RestartPreventExitStatus=2

[Install]
WantedBy=default.target
`

func systemd(home, config string, words []string) Plan {
	if !filepath.IsAbs(config) { // a relative path is to be ignored
		config = filepath.Join(home, ".config")
	}
	folder := filepath.Join(config, "systemd", "user")
	// systemd reads these characters within quotes, and a dollar and a per cent sign anywhere.
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$")
	var line []string
	for _, w := range words {
		line = append(line, `"`+escape.Replace(w)+`"`)
	}
	const file = Name + ".service"
	ctl := func(words ...string) []string { return append([]string{"systemctl", "--user"}, words...) }
	return Plan{
		Path:   filepath.Join(folder, file),
		Text:   fmt.Sprintf(unit, Mark, strings.Join(line, " ")),
		Link:   filepath.Join(folder, "default.target.wants", file),
		Start:  [][]string{ctl("daemon-reload"), ctl("restart", file)},
		Stop:   [][]string{ctl("stop", file)},
		Status: [][]string{ctl("--no-pager", "status", file)},
	}
}

const agent = `<?xml version="1.0" encoding="UTF-8"?>
<!-- %s; 'dewpoint service remove' removes it. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>%s</string>
	<key>ProgramArguments</key>
	<array>
%s	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>StandardErrorPath</key>
	<string>%s</string>
</dict>
</plist>
`

func launchd(home string, user int, words []string) (Plan, error) {
	var arguments strings.Builder
	for _, w := range words {
		text, err := escaped(w)
		if err != nil {
			return Plan{}, err
		}
		fmt.Fprintf(&arguments, "\t\t<string>%s</string>\n", text)
	}
	log, err := escaped(filepath.Join(home, "Library", "Logs", Name+".log"))
	if err != nil {
		return Plan{}, err
	}
	path := filepath.Join(home, "Library", "LaunchAgents", label+".plist")
	domain := fmt.Sprintf("gui/%d", user)
	return Plan{
		Path:   path,
		Text:   fmt.Sprintf(agent, Mark, label, arguments.String(), log),
		Start:  [][]string{{"launchctl", "bootstrap", domain, path}},
		Stop:   [][]string{{"launchctl", "bootout", domain + "/" + label}},
		Status: [][]string{{"launchctl", "print", domain + "/" + label}},
	}, nil
}

func escaped(text string) (string, error) {
	var out strings.Builder
	err := xml.EscapeText(&out, []byte(text))
	return out.String(), err
}
