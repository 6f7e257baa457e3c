package ui

import "time"

// Notice is a page with a sentence: what is wrong, and what to do.
type Notice struct {
	Title, Text string
	Hint        string
	URL         string // to go on; empty: the overview
}

func (Notice) template() string { return "notice" }

// Heading returns the title.
func (n Notice) Heading() string { return n.Title }

// Login is the page on which a person gives a token.
type Login struct {
	Next   string // where to go afterwards
	CSRF   string
	Wrong  bool
	Single string // address of a login at an identity provider; empty: none
}

func (Login) template() string { return "login" }

// Heading returns the title.
func (Login) Heading() string { return "Sign in" }

// Confirm is the page on which a person confirms a change.
type Confirm struct {
	Title, Text string
	Warning     string
	Action      string // address that the form is sent to
	Button      string
	Bad         bool // the change cannot be taken back
	Back        string
	Fields      []Field
	CSRF        string
}

func (Confirm) template() string { return "confirm" }

// Heading returns the title.
func (c Confirm) Heading() string { return c.Title }

// Field is a field of a form.
type Field struct {
	Name, Label, Value string
	Options            []string // to choose from; none: text
	Hidden             bool
}

// Log is the list of what people did.
type Log struct {
	Rows  []LogRow
	Empty string
	Older string
}

func (Log) template() string { return "log" }

// Heading returns the title.
func (Log) Heading() string { return "Activity" }

// LogRow is a change, or that content was read.
type LogRow struct {
	Time   time.Time
	Who    string
	Role   string
	What   string
	On     string
	URL    string
	Tenant string
	From   string
	Did    bool // it changed something
}
