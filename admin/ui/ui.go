// Package ui writes the pages of the inspector. A page is a value that a pure function makes from what was read of the store, and a template
// writes it. The package reads nothing itself, and knows neither requests nor permissions: what it is given may be shown.
package ui

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed assets
var assets embed.FS

// Assets returns the stylesheet and scripts of the pages.
func Assets() fs.FS {
	sub, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // a constant name
	}
	return sub
}

// Page is the value of one page.
type Page interface {
	template() string // name of the template of its content
	Heading() string  // of the browser's tab
}

// Frame is what surrounds a page.
type Frame struct {
	Area    string // which link of the navigation is marked: overview, sessions, log
	Query   string // in the search field
	Person  string // who is signed in; empty: no one had to
	CSRF    string // of the session, for forms; empty: nothing may be changed
	Can     Can
	Version string
	Alone   bool // the page is a file of its own: it has no navigation
}

// Can says what the reader may do.
type Can struct {
	Read   bool // see content
	Change bool // condense, override, delete
	All    bool // see all tenants
}

// Renderer writes pages.
type Renderer struct{ sets map[string]*template.Template }

// New parses the templates.
func New() *Renderer {
	r := &Renderer{sets: map[string]*template.Template{}}
	base := template.Must(template.New("").Funcs(functions).ParseFS(templates, "templates/frame.html", "templates/parts.html"))
	names, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		panic(err) // a constant pattern
	}
	for _, name := range names {
		r.sets[name] = template.Must(template.Must(base.Clone()).ParseFS(templates, name))
	}
	return r
}

// Render returns a page as HTML.
func (r *Renderer) Render(f Frame, p Page) ([]byte, error) {
	var b bytes.Buffer
	name := "templates/" + p.template() + ".html"
	err := r.sets[name].ExecuteTemplate(&b, "frame.html", struct {
		Frame
		Page Page
	}{f, p})
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", p.template(), err)
	}
	return b.Bytes(), nil
}

var functions = template.FuncMap{"tokens": tokens, "count": count, "when": when, "clock": clock, "usd": usd, "plural": plural, "bytes": size, "listed": listed}
