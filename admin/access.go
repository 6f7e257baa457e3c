package admin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Role is what the owner of a token may do.
type Role string

// The roles. Each may do what those before it may.
const (
	RoleViewer   Role = "viewer"   // see figures
	RoleAuditor  Role = "auditor"  // read content
	RoleOperator Role = "operator" // change things
)

// Roles lists the roles.
func Roles() []Role { return []Role{RoleViewer, RoleAuditor, RoleOperator} }

// Token is a token and what it permits.
type Token struct {
	Name    string   // of its owner, for the audit log
	Hash    [32]byte // SHA-256 of the token
	Role    Role
	Tenants []string // whose sessions it opens; none: all
}

// HashToken returns Token.Hash.
func HashToken(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// identity is who sent a request, as far as it shows.
type identity struct {
	name    string
	role    Role
	tenants []string // none: all
	csrf    string   // which forms must send back; empty: there is no session, so forms are refused
	local   bool     // someone on this machine, without a token
}

func (i *identity) mayRead() bool   { return i.role == RoleAuditor || i.role == RoleOperator }
func (i *identity) mayChange() bool { return i.role == RoleOperator }
func (i *identity) unlimited() bool { return len(i.tenants) == 0 }
func (i *identity) sees(tenant string) bool {
	return i.unlimited() || slices.Contains(i.tenants, tenant)
}

// whoKey is the key of a request's identity in its context.
type whoKey struct{}

// who returns the identity of a request that has passed the guard.
func who(r *http.Request) *identity {
	i, _ := r.Context().Value(whoKey{}).(*identity)
	return i
}

func withIdentity(r *http.Request, i *identity) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), whoKey{}, i))
}

// doors knows the tokens, and opens sessions of browsers. A session is a cookie that only the holder of the server secret can make, so replicas
// share it and it survives a restart. It ends with its token.
type doors struct {
	tokens []Token
	start  *Token // opens a port without tokens for who was given the link; nil: there are tokens
	store  session.Store

	mu  sync.Mutex
	key []byte
}

// sessionFor is how long a browser's session lasts.
const sessionFor = 12 * time.Hour

// cookieName is the cookie of a browser's session.
const cookieName = "dewpoint_admin"

func newDoors(o *Options) *doors {
	d := &doors{tokens: slices.Clone(o.Tokens), store: o.Store}
	if o.Token != "" {
		d.tokens = append(d.tokens, Token{Name: "admin.token", Hash: HashToken(o.Token), Role: RoleOperator})
	}
	if len(d.tokens) == 0 && o.StartToken != "" {
		d.start = &Token{Name: "this start", Hash: HashToken(o.StartToken), Role: RoleOperator}
	}
	return d
}

// closed reports whether every request needs a token.
func (d *doors) closed() bool { return len(d.tokens) > 0 }

// all returns the tokens, that of the start among them.
func (d *doors) all() []Token {
	if d.start != nil {
		return []Token{*d.start}
	}
	return d.tokens
}

// find returns the token with a hash, nil if there is none. It takes the same time whether and where there is one.
func (d *doors) find(hash [32]byte) (found *Token) {
	for i, t := range d.all() {
		if subtle.ConstantTimeCompare(t.Hash[:], hash[:]) == 1 {
			found = &d.all()[i]
		}
	}
	return found
}

// identify returns who sent a request; nil if it takes a token and there is none that is valid.
func (d *doors) identify(r *http.Request) *identity {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if t := d.find(HashToken(strings.TrimSpace(token))); t != nil && strings.EqualFold(scheme, "Bearer") {
			return &identity{name: t.Name, role: t.Role, tenants: t.Tenants}
		}
		if d.closed() {
			return nil
		}
	}
	if c, err := r.Cookie(cookieName); err == nil {
		if i := d.bySession(r.Context(), c.Value); i != nil {
			return i
		}
	}
	if d.closed() {
		return nil
	}
	local := &identity{name: "someone on this machine", role: RoleViewer, local: true}
	if d.start == nil {
		local.role = RoleOperator
	}
	return local
}

// A cookie is the hash of its token, its end and a random number, with a MAC of these.
const (
	cookieBody = 16 + 8 + 16
	cookieSize = cookieBody + sha256.Size
)

// openSession returns the value of a cookie for a token.
func (d *doors) openSession(ctx context.Context, t *Token, now time.Time) (string, error) {
	body := make([]byte, cookieBody, cookieSize)
	copy(body, t.Hash[:16])
	binary.BigEndian.PutUint64(body[16:], uint64(now.Add(sessionFor).Unix())) //nolint:gosec // after 1970
	_, _ = rand.Read(body[24:])                                               // never fails
	mac, err := d.mac(ctx, "cookie", body)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(append(body, mac...)), nil
}

// bySession returns whose session a cookie is, nil if it is none or has ended.
func (d *doors) bySession(ctx context.Context, value string) *identity {
	raw, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(raw) != cookieSize {
		return nil
	}
	body := raw[:cookieBody]
	want, err := d.mac(ctx, "cookie", body)
	if err != nil || !hmac.Equal(want, raw[cookieBody:]) || int64(binary.BigEndian.Uint64(body[16:])) < time.Now().Unix() { //nolint:gosec // as written
		return nil
	}
	for _, t := range d.all() {
		if hmac.Equal(t.Hash[:16], body[:16]) {
			csrf, err := d.mac(ctx, "form", raw)
			if err != nil {
				return nil
			}
			return &identity{name: t.Name, role: t.Role, tenants: t.Tenants, csrf: hex.EncodeToString(csrf)}
		}
	}
	return nil
}

// mac authenticates data for a purpose under a key that is derived from the server secret.
func (d *doors) mac(ctx context.Context, purpose string, data []byte) ([]byte, error) {
	key, err := d.secret(ctx)
	if err != nil {
		return nil, err
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte("dewpoint admin " + purpose + "\x00"))
	m.Write(data)
	return m.Sum(nil), nil
}

func (d *doors) secret(ctx context.Context) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.key == nil {
		proposed := make(session.Secret, sha256.Size)
		_, _ = rand.Read(proposed) // never fails
		s, err := d.store.Secret(ctx, proposed)
		if err != nil {
			return nil, err // it names its operation
		}
		d.key = s
	}
	return d.key, nil
}

// cookie returns the cookie of a session; an empty value ends the session.
func cookie(value string, secure bool) *http.Cookie {
	c := &http.Cookie{ //nolint:gosec // Secure where the port has TLS: browsers would not send it back on loopback without
		Name: cookieName, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure, MaxAge: int(sessionFor.Seconds()),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}
