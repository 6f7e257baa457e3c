package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Fault is an error as a client is told. Code is stable; Message says what to do.
type Fault struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"` // the parameter that it is about
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

// errBusy is for a client that has left while it waited for others.
func errBusy() *Fault {
	return fault(http.StatusServiceUnavailable, "busy", "Others read messages at the moment. Try again shortly.")
}

func noSession() *Fault {
	return fault(http.StatusNotFound, "session_not_found", "There is no such session: it has expired, was deleted, or never was.")
}

func noThread() *Fault {
	return fault(http.StatusNotFound, "thread_not_found", "The session has no such thread.")
}

// unless gives f in the place of ErrNotFound.
func unless(err error, f *Fault) error {
	if errors.Is(err, session.ErrNotFound) {
		return f
	}
	return err
}

// refuse writes the one form that all errors have.
func refuse(w http.ResponseWriter, f *Fault) {
	body, _ := json.Marshal(map[string]*Fault{"error": f}) // strings only: cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	_, _ = w.Write(body)
}
