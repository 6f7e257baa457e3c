package app

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/runs"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// announcement says where a process serves, for other processes that would use the same file.
type announcement struct {
	Listen, Admin string // Admin is "-" if there is no admin port
	PID           int
	Since         time.Time
	Control       runs.Address // empty: it serves no runs
	AdminToken    string       // see App.AdminToken
}

// announce leaves an announcement beside an embedded store. Without it, another start cannot say where this process serves.
func (a *App) announce(backend session.Backend) {
	store, embedded := backend.(*boltstore.Store)
	if !embedded {
		return
	}
	text := fmt.Appendf(nil, "%s %s %d %s", a.Addr(), cmp.Or(a.AdminAddr(), "-"), os.Getpid(), time.Now().Format(time.RFC3339))
	control := runs.Address{Listen: "-", Secret: "-"}
	if a.control != nil {
		control = a.control.Address()
	}
	text = fmt.Appendf(text, " %s %s %s", control.Listen, control.Secret, cmp.Or(a.startToken, "-"))
	text = append(text, '\n')
	if err := store.Announce(text); err != nil {
		a.log.Debug("another start will not be told where this process serves: " + err.Error())
	}
}

// announced returns what the process that has the file has announced, the zero value if that cannot be read.
func announced(path string) (a announcement) {
	var since string
	read, err := fmt.Sscan(string(boltstore.Announced(path)), &a.Listen, &a.Admin, &a.PID, &since, &a.Control.Listen, &a.Control.Secret, &a.AdminToken)
	if a.Control.Listen == "-" {
		a.Control = runs.Address{}
	}
	if read >= 4 {
		a.Since, err = time.Parse(time.RFC3339, since)
	}
	if err != nil {
		return announcement{}
	}
	return a
}

// Announced returns where the process that uses the embedded store of a configuration lets others begin runs, and its process id. It is empty
// if there is none, or it serves no runs. The process may have ended.
func Announced(cfg *config.Config) (control runs.Address, pid int) {
	if cfg.Store.Type != config.StoreEmbedded {
		return runs.Address{}, 0
	}
	path, err := storePath(cfg.Store)
	if err != nil {
		return runs.Address{}, 0
	}
	a := announced(path)
	return a.Control, a.PID
}

// AnnouncedAdmin returns the address of the admin port of the process that uses the embedded store of a configuration, and the token for it
// if it requires none. Both are empty if that is not known.
func AnnouncedAdmin(cfg *config.Config) (address, token string) {
	if cfg.Store.Type != config.StoreEmbedded {
		return "", ""
	}
	path, err := storePath(cfg.Store)
	if err != nil {
		return "", ""
	}
	a := announced(path)
	return strings.TrimPrefix(a.Admin, "-"), strings.TrimPrefix(a.AdminToken, "-")
}

// RunningError reports that another process uses the file of the embedded store.
type RunningError struct {
	Path string // of the file
	announcement
}

func (e *RunningError) Error() string {
	const advice = "or start another one with --listen 127.0.0.1:0 --admin 127.0.0.1:0 --store FILE"
	if e.Listen == "" {
		return fmt.Sprintf("another process uses %s: stop it, %s", e.Path, advice)
	}
	return fmt.Sprintf("Dewpoint already runs on %s (since %s, process %d) and uses %s: point agents at it, %s",
		e.Listen, e.Since.Format("2006-01-02 15:04"), e.PID, e.Path, advice)
}
