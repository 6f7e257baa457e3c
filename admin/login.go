package admin

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/dewpoint-proxy/dewpoint/admin/ui"
)

// loginCookie holds a random number that the login form must send back, so that no other site can sign a browser in.
const loginCookie = "dewpoint_login"

// maxForm is the size of the largest form that is read.
const maxForm = 64 << 10

func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// enter opens a session if the address carries a token, as the link does that a terminal prints. It takes the token out of the address.
func (p *pages) enter(v *visit) (done bool) {
	query := v.URL.Query()
	if !safe(v.Method) || !query.Has("token") {
		return false
	}
	if t := p.doors.find(HashToken(query.Get("token"))); t != nil {
		if err := p.signIn(v, t); err != nil {
			p.fault(v, "", p.faultOf(err))
			return true
		}
	}
	query.Del("token")
	to := *v.URL
	to.RawQuery = query.Encode()
	http.Redirect(v.to, v.Request, ownPath(to.RequestURI()), http.StatusSeeOther)
	return true
}

// signIn sets the cookie of a session.
func (p *pages) signIn(v *visit, t *Token) error {
	value, err := p.doors.openSession(v.Context(), t, time.Now())
	if err != nil {
		return err // it names its operation
	}
	http.SetCookie(v.to, cookie(value, v.TLS != nil))
	return nil
}

func (p *pages) showLogin(v *visit) {
	if v.who != nil && !v.who.local {
		http.Redirect(v.to, v.Request, ownPath(v.URL.Query().Get("next")), http.StatusSeeOther)
		return
	}
	p.loginForm(v, v.URL.Query().Get("next"), false)
}

func (p *pages) loginForm(v *visit, next string, wrong bool) {
	number := make([]byte, 16)
	_, _ = rand.Read(number) // never fails
	csrf := hex.EncodeToString(number)
	http.SetCookie(v.to, &http.Cookie{ //nolint:gosec // as the cookie of a session
		Name: loginCookie, Value: csrf, Path: "/login", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: v.TLS != nil,
	})
	status := http.StatusOK
	if wrong {
		status = http.StatusUnauthorized
	}
	p.render(v, "", status, ui.Login{Next: ownPath(next), CSRF: csrf, Wrong: wrong})
}

func (p *pages) login(v *visit) {
	v.Body = http.MaxBytesReader(v.to, v.Body, maxForm)
	next, sent := v.PostFormValue("next"), v.PostFormValue("csrf")
	if c, err := v.Cookie(loginCookie); err != nil || sent == "" || !sameText(c.Value, sent) {
		p.loginForm(v, next, false)
		return
	}
	t := p.doors.find(HashToken(v.PostFormValue("token")))
	if t == nil {
		p.loginForm(v, next, true)
		return
	}
	if err := p.signIn(v, t); err != nil {
		p.fault(v, "", p.faultOf(err))
		return
	}
	http.Redirect(v.to, v.Request, ownPath(next), http.StatusSeeOther)
}

func (p *pages) logout(v *visit) {
	if v.who != nil && v.who.csrf != "" && sameText(v.PostFormValue("csrf"), v.who.csrf) {
		http.SetCookie(v.to, cookie("", v.TLS != nil))
	}
	http.Redirect(v.to, v.Request, "/", http.StatusSeeOther)
}
