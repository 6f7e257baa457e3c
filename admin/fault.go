package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Fault is an error that is sent to the client. Code is stable; Message says what to do.
type Fault struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"` // the parameter at fault
}

func (f *Fault) Error() string { return fmt.Sprintf("%d %s: %s", f.Status, f.Code, f.Message) }

func fault(status int, code, format string, args ...any) *Fault {
	return &Fault{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

func badParam(name, format string, args ...any) *Fault {
	f := fault(http.StatusBadRequest, "invalid_parameter", format, args...)
	f.Param = name
	return f
}

var (
	// errBusy is for a client that left while it waited for other requests.
	errBusy        = fault(http.StatusServiceUnavailable, "busy", "Another request is reading messages. Try again shortly.")
	errUnavailable = fault(http.StatusServiceUnavailable, "store_unavailable", "The store cannot be reached. Try again shortly.")
	errNoThread    = fault(http.StatusNotFound, "thread_not_found", "The session has no such thread.")

	errNoSession = fault(http.StatusNotFound, "session_not_found",
		"There is no such session. It has expired, was deleted, or never existed.")
	errNoRequest = fault(http.StatusNotFound, "request_not_found",
		"No request with this id is recorded. It has expired, its session was deleted, it was not recognised as part of a session, or it never existed.")
	errCompacting = fault(http.StatusServiceUnavailable, "compacting",
		"The store's file is still being rewritten, which goes on. Call again to wait for its end.")
	errThreadTooLarge = fault(http.StatusConflict, "thread_too_large",
		"The log is too large to be shown as a whole. Read it in pages, at .../events.")
	errIncomplete = fault(http.StatusConflict, "log_incomplete",
		"Part of the log is missing: it was evicted, was lost in a crash, is damaged, or is being deleted. The thread's next request restores what it can.")
)

// replaceNotFound returns f if err is session.ErrNotFound, and err otherwise.
func replaceNotFound(err error, f *Fault) error {
	if errors.Is(err, session.ErrNotFound) {
		return f
	}
	return err
}

// refuse writes a fault in the shape that all errors share.
func refuse(w http.ResponseWriter, f *Fault) {
	body, _ := json.Marshal(map[string]*Fault{"error": f}) // strings only: cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	_, _ = w.Write(body)
}
