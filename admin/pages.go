package admin

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/admin/ui"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// pages serves the inspector: the API's data as pages for people.
type pages struct {
	*api
	write  *ui.Renderer
	titles lru.Cache[session.SessionID, string] // by session: the first words of a person; they do not change
	list   sessionIndex
}

// visit is a request for a page.
type visit struct {
	*http.Request
	who *identity
	to  http.ResponseWriter
}

// page is one page: what it needs, and the function that makes it.
type page struct {
	pattern string
	area    string
	make    func(*pages, *visit) (ui.Page, error)
	change  bool // only for those who may change things
	content bool // reads messages
}

const maxTitles = 20_000

func newPages(a *api) *pages {
	p := &pages{api: a, write: ui.New(), titles: lru.New[session.SessionID, string](maxTitles)}
	p.list.archive = a.o.Archive
	return p
}

func (p *pages) all() []page {
	return []page{
		{pattern: "GET /{$}", area: "overview", make: (*pages).overview},
		{pattern: "GET /sessions", area: "sessions", make: (*pages).sessions},
		{pattern: "GET /s/{session}", area: "sessions", make: (*pages).session},
		{pattern: "GET /s/{session}/{thread}/{at}", area: "sessions", make: (*pages).step, content: true},
		{pattern: "GET /s/{session}/{thread}/{at}/m/{message}", area: "sessions", make: (*pages).message, content: true},
		{pattern: "GET /s/{session}/{thread}/c/{condensation}", area: "sessions", make: (*pages).condensation, content: true},
		{pattern: "GET /s/{session}/{thread}/condense", area: "sessions", make: (*pages).confirmCondense, change: true},
		{pattern: "POST /s/{session}/{thread}/condense", area: "sessions", make: (*pages).doCondense, change: true},
		{pattern: "GET /s/{session}/delete", area: "sessions", make: (*pages).confirmDelete, change: true},
		{pattern: "POST /s/{session}/delete", area: "sessions", make: (*pages).doDelete, change: true},
		{pattern: "GET /delete", area: "sessions", make: (*pages).confirmDeleteKey, change: true},
		{pattern: "POST /delete", area: "sessions", make: (*pages).doDeleteKey, change: true},
		{pattern: "GET /condensing", area: "overview", make: (*pages).confirmMode, change: true},
		{pattern: "POST /condensing", area: "overview", make: (*pages).doMode, change: true},
		{pattern: "GET /activity", area: "log", make: (*pages).activity, change: true},
		{pattern: "GET /r/{request}", area: "sessions", make: (*pages).request},
	}
}

func (p *pages) mount(mux *http.ServeMux) {
	assets := http.FileServerFS(ui.Assets())
	mux.HandleFunc("GET /assets/{name}", func(w http.ResponseWriter, r *http.Request) {
		setPageHeaders(w.Header())
		w.Header().Set("Cache-Control", "max-age=3600")
		http.StripPrefix("/assets", assets).ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /login", p.open(p.showLogin))
	mux.HandleFunc("POST /login", p.open(p.login))
	mux.HandleFunc("POST /logout", p.open(p.logout))
	mux.HandleFunc("GET /activity/export", p.open(p.exportActivity))
	for _, one := range p.all() {
		mux.HandleFunc(one.pattern, p.open(func(v *visit) { p.serve(one, v) }))
	}
}

// setPageHeaders keeps a page from being framed, stored or extended.
func setPageHeaders(h http.Header) {
	setSecurityHeaders(h)
	h.Set("Referrer-Policy", "same-origin") // under no-referrer, browsers send forms without their origin
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
}

// open checks where a request for a page comes from, and who sent it.
func (p *pages) open(next func(*visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		setPageHeaders(w.Header())
		v := &visit{Request: r, to: w}
		if safe(r.Method) && followedLink(r) { // the cookie was not sent
			p.render(v, "", http.StatusOK, ui.Notice{
				Title: "You followed a link from another site", Text: "So that no other site can see or do anything here, this page opens only from here.",
				Hint: "Open it: ", URL: r.URL.RequestURI(),
			})
			return
		}
		if f := p.checkOrigin(r); f != nil {
			refuse(w, f)
			return
		}
		if p.enter(v) {
			return
		}
		v.who = p.doors.identify(r)
		if v.who != nil {
			v.Request = withIdentity(r, v.who)
		}
		next(v)
	}
}

// followedLink reports whether a person opened the page by a link on another site. Such a request may be answered, since that site cannot see
// the answer.
func followedLink(r *http.Request) bool {
	h := r.Header
	return h.Get("Sec-Fetch-Site") == "cross-site" && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" && len(h.Values("Origin")) == 0
}

// serve makes a page and writes it.
func (p *pages) serve(one page, v *visit) {
	f := p.admit(one, v)
	if f != nil {
		p.fault(v, one.area, f)
		return
	}
	if one.content {
		select {
		case p.reading <- struct{}{}:
			defer func() { <-p.reading }()
		case <-v.Context().Done():
			return
		}
	}
	made, err := p.made(one, v)
	switch moved := (redirect{}); {
	case errors.As(err, &moved):
		http.Redirect(v.to, v.Request, moved.to, http.StatusSeeOther)
	case err != nil:
		p.fault(v, one.area, p.faultOf(err))
	default:
		p.render(v, one.area, http.StatusOK, made)
	}
}

// made makes a page. If that panics, the visitor gets an error like any other.
func (p *pages) made(one page, v *visit) (out ui.Page, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			out, err = nil, fmt.Errorf("page %s: panic: %v\n%s", one.pattern, cause, debug.Stack())
		}
	}()
	return one.make(p, v)
}

// admit returns why a page is not for the visitor.
func (p *pages) admit(one page, v *visit) *Fault {
	switch {
	case v.who == nil:
		return fault(http.StatusUnauthorized, "token_required", "")
	case one.change && (!v.who.mayChange() || v.who.local):
		return fault(http.StatusForbidden, "not_permitted", "Only operators may change things.")
	case !safe(v.Method) && (v.who.csrf == "" || !sameText(v.PostFormValue("csrf"), v.who.csrf)):
		return sorry(http.StatusForbidden, "The form is too old, or was not sent from here. Open it again.")
	}
	return nil
}

// sorry is an error of a page, which has no code.
func sorry(status int, text string) *Fault { return &Fault{Status: status, Message: text} }

// redirect is the error of a page that is elsewhere.
type redirect struct{ to string }

func (r redirect) Error() string { return "moved to " + r.to }

var faultTitles = map[int]string{
	http.StatusNotFound: "Not here", http.StatusForbidden: "Not permitted", http.StatusConflict: "Not possible", http.StatusBadRequest: "Not understood",
	http.StatusServiceUnavailable: "Not now", http.StatusInternalServerError: "It failed",
}

// fault writes an error as a page. Who must sign in first is sent to do so.
func (p *pages) fault(v *visit, area string, f *Fault) {
	if f.Status == http.StatusUnauthorized {
		to := "/login"
		if safe(v.Method) && v.URL.Path != "/" {
			to += "?next=" + url.QueryEscape(v.URL.RequestURI())
		}
		http.Redirect(v.to, v.Request, to, http.StatusSeeOther)
		return
	}
	p.render(v, area, f.Status, ui.Notice{Title: faultTitles[f.Status], Text: f.Message})
}

// render writes a page.
func (p *pages) render(v *visit, area string, status int, made ui.Page) {
	body, err := p.write.Render(p.frame(v, area), made)
	if err != nil {
		p.o.OnError(err)
		http.Error(v.to, "The page could not be written. See the log for the cause.", http.StatusInternalServerError)
		return
	}
	v.to.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.to.WriteHeader(status)
	_, _ = bytes.NewReader(body).WriteTo(v.to) // a client that has left needs no page
}

func (p *pages) frame(v *visit, area string) ui.Frame {
	f := ui.Frame{Area: area, Version: p.o.Version}
	if area == "sessions" {
		f.Query = v.URL.Query().Get("q")
	}
	if v.who != nil {
		f.CSRF = v.who.csrf
		f.Can = ui.Can{Read: v.who.mayRead(), Change: v.who.mayChange() && v.who.csrf != "", All: v.who.unlimited()}
		if v.who.csrf != "" {
			f.Person = v.who.name
		}
	}
	return f
}

// missing says why a visitor does not see the content of sessions, if that is so.
func (v *visit) missing() ui.Missing {
	switch {
	case v.who.mayRead():
		return ui.NotMissing
	case v.who.local:
		return ui.NotLinked
	}
	return ui.NotPermitted
}

// ownPath returns a path of this site, "/" for anything else.
func ownPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.Contains(next, "\\") {
		return "/"
	}
	return next
}
