package console

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
)

// Banner is what the start says.
type Banner struct {
	Version string
	File    string         // the configuration file; empty: none
	Config  *config.Config // in force
	Listen  string         // address of the data port that clients on this machine can use
	Admin   string         // of the admin port, as in a link; empty: none
	Store   string         // the embedded store's file; empty: another store
	Kept    string         // how much the store has, such as "12 sessions"; empty: not known
	Home    string         // the user's home folder, shown as ~; empty: not known
}

// render lays the banner out for a screen.
func (b *Banner) render(s terminal.Screen) string {
	columns := s.Columns()
	if columns == 0 {
		columns = boundary
	}
	var text strings.Builder
	fmt.Fprintln(&text, s.Paint(terminal.Bold, "Dewpoint "+b.Version))
	for _, row := range b.rows() {
		label := row.label
		for _, line := range row.lines {
			for _, piece := range pieces(terminal.Clean(line), max(columns-bannerIndent-1, 20)) {
				fmt.Fprintf(&text, "  %s%s\n", s.Paint(terminal.Faint, fmt.Sprintf("%-*s", bannerIndent-2, label)), piece)
				label = ""
			}
		}
	}
	return text.String() + "\n"
}

const bannerIndent = 12

// pieces breaks a text into lines, unless someone will copy it.
func pieces(text string, columns int) []string {
	if strings.HasPrefix(text, assignment) {
		return []string{text}
	}
	return terminal.Wrap(text, columns)
}

// assignment begins a line for a shell.
const assignment = "export "

type row struct {
	label string
	lines []string
}

func (b *Banner) rows() (rows []row) {
	add := func(label string, lines ...string) { rows = append(rows, row{label, lines}) }
	base := "http://" + b.Listen
	add("agents", base, assignment+"OPENAI_BASE_URL="+base+"/v1", assignment+"ANTHROPIC_BASE_URL="+base)
	if b.Admin != "" {
		add("look", "http://"+b.Admin)
	}
	add("upstream", upstream(b.Config))
	add("state", b.state())
	add("condense", Condensing(b.Config))
	if b.File != "" {
		add("config", b.short(b.File))
	}
	return rows
}

func (b *Banner) state() string {
	where := "Redis"
	if b.Store != "" {
		where = b.short(b.Store)
	}
	if b.Kept != "" {
		where += " (" + b.Kept + ")"
	}
	return where
}

// short returns a path with ~ in place of the home folder.
func (b *Banner) short(path string) string {
	if rest, inside := strings.CutPrefix(path, b.Home+string(os.PathSeparator)); inside && b.Home != "" {
		return "~" + string(os.PathSeparator) + rest
	}
	return path
}

// upstream says where requests go and whose key they carry.
func upstream(cfg *config.Config) string {
	all := cfg.UpstreamsFor(config.Tenant{})
	where := shownURL(all[0].BaseURL) + keyOf(all[0])
	if len(all) > 1 {
		hosts := make([]string, len(all))
		for i, up := range all {
			hosts[i] = hostOf(up.BaseURL) + keyOf(up)
		}
		where = "by provider, with each client's own key: " + strings.Join(hosts, ", ")
	} else if all[0].APIKey == "" {
		where += ", with each client's own key"
	}
	if !cfg.IsOpen() {
		where += fmt.Sprintf("; %s may have their own", plural(len(cfg.Tenants), "tenant"))
	}
	return where
}

// keyOf says that an upstream is called with a key of the configuration, if it is.
func keyOf(up config.Upstream) string {
	if up.APIKey == "" {
		return ""
	}
	return " (with the key of the configuration)"
}

// hostOf returns the host of an address, or all that can be shown of it.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return shownURL(address)
}

// shownURL returns an address without what may be a secret.
func shownURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// Condensing says in words what the configuration does to long histories.
func Condensing(cfg *config.Config) string {
	var all []string
	for _, t := range cfg.EveryTenant() {
		says := condenser(cfg, t)
		if cfg.Observes(t) {
			says = "only observed, nothing is changed: " + says
		}
		if len(all) == 0 || all[0] != says {
			all = append(all, says)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return fmt.Sprintf("as each of %s has it", plural(len(cfg.Tenants), "tenant"))
}

// ways says what types of condensers do, if that is not their description in the catalogue.
var ways = map[string]string{
	catalogue.TypeNoop:     "never",
	catalogue.TypeExcerpts: "with excerpts; no model is called. Summaries: set condenser.llm_config (dewpoint init)",
}

func condenser(cfg *config.Config, t config.Tenant) string {
	chosen := cfg.CondenserFor(t)
	var says []string
	for _, stage := range chosen.Stages() {
		if !stage.Entry().Wraps() {
			says = append(says, way(cfg, t, stage))
		}
	}
	return strings.Join(says, "; then ")
}

// way says what a condenser does and when.
func way(cfg *config.Config, t config.Tenant, c config.Condenser) string {
	e := c.Entry()
	says := ways[c.Type]
	switch {
	case says != "":
	case e.Records && e.AsksModel():
		says = "with summaries by " + writer(cfg, t, c)
	case e.AsksModel():
		says = plain(e.Doc) + ", by " + writer(cfg, t, c)
	default:
		says = plain(e.Doc)
	}
	switch {
	case !e.Rolling():
		return says
	case c.ByPrice():
		return "by price, " + says
	}
	return "above its limits, " + says
}

// writer says which model writes summaries.
func writer(cfg *config.Config, t config.Tenant, c config.Condenser) string {
	up := cfg.UpstreamFor(t, config.General)
	llm, known := cfg.LLMFor(c.LLMConfig, t, up)
	switch {
	case c.LLMConfig == "" && up.APIKey == "":
		return "each request's own model, with the client's key"
	case c.LLMConfig == "" || !known:
		return "each request's own model"
	case llm.BaseURL != up.BaseURL:
		return llm.Model + " at " + shownURL(llm.BaseURL)
	}
	return llm.Model
}

// plain returns a description of the catalogue without its marks.
func plain(doc string) string {
	doc = strings.TrimPrefix(doc, "rolling: ")
	doc, _, _ = strings.Cut(doc, "](")
	return strings.NewReplacer("`", "", "[", "").Replace(doc)
}
