package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// The places of the page, which the lines <!-- NAME: begin --> and <!-- NAME: end --> enclose.
const (
	resultsPlace  = "results"
	sectionsPlace = "clients"
)

// publish writes the results of a run and the sections of all clients into the page at path. Rows of clients that did not run stay.
func publish(path string, t table, reports []report) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	page, err := splice(string(text), resultsPlace, results(string(text), t, reports))
	if err != nil {
		return fmt.Errorf("publish in %s: %w", path, err)
	}
	if page, err = splice(page, sectionsPlace, sections(t)); err != nil {
		return fmt.Errorf("publish in %s: %w", path, err)
	}
	return os.WriteFile(path, []byte(page), 0o644)
}

func splice(page, name, content string) (string, error) {
	before, _, after, err := cut(page, name)
	if err != nil {
		return "", err
	}
	return before + "\n\n" + strings.TrimSpace(content) + "\n\n" + after, nil
}

func cut(page, name string) (before, content, after string, err error) {
	begin, end := "<!-- "+name+": begin -->", "<!-- "+name+": end -->"
	before, rest, begun := strings.Cut(page, begin)
	content, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return "", "", "", fmt.Errorf("no place %s ... %s", begin, end)
	}
	return before + begin, content, end + after, nil
}

// results is the table of results. A client that did not run has the row of the old page, if that has one.
func results(page string, t table, reports []report) string {
	old := map[string]string{}
	if _, content, _, err := cut(page, resultsPlace); err == nil {
		for line := range strings.Lines(content) {
			if cells := strings.Split(line, "|"); len(cells) > 2 {
				old[strings.TrimSpace(cells[1])] = strings.TrimSpace(line)
			}
		}
	}
	rows := map[string]string{}
	for _, r := range reports {
		rows[r.client.Name] = r.row()
	}
	var out strings.Builder
	out.WriteString("| client | version | protocol | requests | condensed | sessions/threads | result |\n|---|---|---|---|---|---|---|\n")
	for _, c := range t.Clients {
		row := rows[c.Name]
		if row == "" {
			row = old[c.link()]
		}
		if row != "" {
			fmt.Fprintln(&out, row)
		}
	}
	return out.String()
}

func (r report) row() string {
	c := r.client
	if r.missing != "" {
		return fmt.Sprintf("| %s | %s | %s | | | | not installed |", c.link(), c.version(), c.Protocol)
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %d | %d/%d | %s |", c.link(), c.version(), c.Protocol, r.requests, r.condensations,
		len(r.sessions), len(r.threads), strings.TrimSuffix(r.outcome()+", "+r.notDone(), ", "))
}

// link is the client's name, as a link to its section.
func (c client) link() string { return "[" + c.Name + "](#" + anchor(c.Name) + ")" }

// anchor is the fragment that Markdown gives a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case plain(r) == r:
			return r
		}
		return -1
	}, strings.ToLower(heading))
}

// sections has a section for each client.
func sections(t table) string {
	var out strings.Builder
	for _, kind := range []struct{ name, title string }{{"agent", "Agents"}, {"sdk", "SDKs"}} {
		fmt.Fprintf(&out, "## %s\n\n", kind.title)
		for _, c := range t.Clients {
			if c.Kind == kind.name {
				out.WriteString(c.section())
			}
		}
	}
	return out.String()
}

func (c client) section() string {
	var out strings.Builder
	fmt.Fprintf(&out, "### %s\n\nTested: %s (%s).\n\n%s", c.Name, code(c.Packages), c.Registry, c.pointing())
	for _, line := range []struct{ label, text string }{{"You see", c.Sees}, {"Switch off", c.Off}, {"Note", c.Note}} {
		if line.text != "" {
			fmt.Fprintf(&out, "- %s: %s\n", line.label, strings.TrimSpace(line.text))
		}
	}
	return out.String() + "\n"
}

func code(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, "`"+w+"`")
	}
	return strings.Join(out, ", ")
}

// pointing is how the client's user points it: files, then what to type, or the lines of a script.
func (c client) pointing() string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		fmt.Fprintf(&out, "`%s`:\n\n```%s\n%s\n```\n\n", name, language(name), strings.TrimSpace(c.Files[name]))
	}
	if c.Script != "" {
		fmt.Fprintf(&out, "```%s\n%s\n```\n\n", language(c.Script), c.lines())
		return out.String()
	}
	var typed []string
	for _, name := range slices.Sorted(maps.Keys(c.Environment)) {
		typed = append(typed, "export "+name+"="+c.Environment[name])
	}
	if typed = append(typed, c.Command); c.Command != "" {
		fmt.Fprintf(&out, "```sh\n%s\n```\n\n", strings.Join(typed, "\n"))
	}
	return out.String()
}

// language names a file's language to Markdown.
func language(name string) string {
	switch ending := name[strings.LastIndex(name, ".")+1:]; ending {
	case "py":
		return "python"
	case "mjs":
		return "js"
	case "yml":
		return "yaml"
	case "json", "toml", "yaml":
		return ending
	}
	return ""
}

// lines are those of the script between two marks, without their indentation.
func (c client) lines() string {
	text, err := files.ReadFile("scripts/" + c.Script)
	if err != nil {
		return ""
	}
	comment := "# "
	if strings.HasSuffix(c.Script, ".mjs") {
		comment = "// "
	}
	_, rest, _ := strings.Cut(string(text), comment+"[point\n")
	between, _, _ := strings.Cut(rest, comment+"point]")
	return strings.TrimSpace(between)
}
