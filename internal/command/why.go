package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
)

// explainedRequest is what the admin API shows of a request, as far as why explains it.
type explainedRequest struct {
	Request, Session, Thread, Model, Code string
	Begun                                 string
	Step, Status, Condensations           int
	Usage                                 struct {
		Reported              bool
		Input, Cached, Output int
	}
	Before, After struct{ Events, Tokens int }
	Due           string
	Did           string
	Whole         string
	Split         string
	SplitAt       int    `json:"split_at"`
	Miss          string `json:"cache_miss"`
	USD           struct{ Charged, Saved account.Pico }
}

// why explains requests: what was condensed and why, or why not, why a thread began, and why upstream's cache was missed.
func why(ctx context.Context, args []string, out, errs io.Writer) error {
	fs := flags("why", errs)
	admin := fs.String("admin", "", "address of the proxy's admin port (default: as configured)")
	file := fs.String("config", "", "the proxy's configuration file (default: that of the proxy running on this machine)")
	tenant := fs.String("tenant", "", "of whom the request is, if several tenants' clients chose the same id (default: the newest of all)")
	if err := parse(fs, args, out); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return usageError{errors.New("dewpoint: why takes the id of a request (X-Dewpoint-Request-Id) or of a session (X-Dewpoint-Session)")}
	}
	cfg, err := runningConfig(*file)
	if cfg == nil {
		return usageError{err}
	}
	addr, err := adminAddress(*admin, *file)
	if err != nil {
		return usageError{err}
	}
	id, token := url.PathEscape(fs.Arg(0)), cfg.Admin.Token.Reveal()
	var one explainedRequest
	at := "/api/v1/requests/" + id
	if *tenant != "" {
		at += "?tenant=" + url.QueryEscape(*tenant)
	}
	text, err := askAdmin(ctx, addr, token, at)
	if err == nil {
		if err := json.Unmarshal(text, &one); err != nil {
			return fmt.Errorf("why: %w", err)
		}
		explain(out, &one)
		return nil
	}
	if refused, is := errors.AsType[adminError](err); !is || refused.code != "request_not_found" && refused.code != "invalid_parameter" {
		return fmt.Errorf("why: %w", err)
	}
	var list struct{ Requests []explainedRequest }
	if text, err = askAdmin(ctx, addr, token, "/api/v1/sessions/"+id+"/requests?limit=100"); err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return fmt.Errorf("why: there is no request with this id, and: %w", err)
	}
	explainSession(out, list.Requests)
	return nil
}

// explainSession explains the requests at which something happened, oldest first, and counts the others.
func explainSession(out io.Writer, newestFirst []explainedRequest) {
	uneventful := 0
	for i := range slices.Backward(newestFirst) {
		if r := &newestFirst[i]; r.eventful() {
			explain(out, r)
		} else {
			uneventful++
		}
	}
	if uneventful > 0 {
		fmt.Fprintf(out, "At %d of the newest %d requests nothing was due, and upstream read from its cache what it could.\n", uneventful, len(newestFirst))
	}
}

// eventful reports whether something was condensed or failed, a thread began, or upstream's cache was missed.
func (r *explainedRequest) eventful() bool {
	quiet := r.Did == "" || r.Did == "below"
	return r.Code != "" || r.Split != "" || r.Whole != "" || r.Condensations > 0 || !quiet || r.Miss != "" && r.Miss != string(account.MissFirst)
}

// explain says in sentences what a request was.
func explain(out io.Writer, r *explainedRequest) {
	clean := terminal.Clean
	fmt.Fprintf(out, "%s  %s  step %d of thread %s, %s: status %d\n", clean(r.Begun), clean(r.Request), r.Step, clean(r.Thread), clean(r.Model), r.Status)
	say := func(format string, args ...any) { fmt.Fprintf(out, "  "+format+"\n", args...) }
	if r.Code != "" {
		say("It failed: %s.", clean(r.Code))
	}
	if r.Split != "" {
		say("It began a thread: %s.", clean(account.LeftWords(r.Split, r.SplitAt)))
	}
	say("%s", condensing(r))
	if r.After.Tokens > 0 {
		say("%s of %s prompt tokens were forwarded, of which upstream read %s from its cache. It cost %s, and condensing saved %s.",
			grouped(int64(r.After.Tokens)), grouped(int64(r.Before.Tokens)), grouped(int64(r.Usage.Cached)), dollars(r.USD.Charged), dollars(r.USD.Saved))
	}
	if r.Miss != "" {
		say("Upstream's cache: %s.", clean(account.Miss(r.Miss).Words()))
	}
}

// condensing says what condensing did for a request, or why nothing.
func condensing(r *explainedRequest) string {
	due := ""
	if r.Due != "" {
		due = fmt.Sprintf(" It was due (%s).", r.Due)
	}
	switch {
	case r.Condensations > 0:
		return "The history was condensed" + times(r.Condensations) + "." + due
	case r.Whole != "":
		return fmt.Sprintf("Its history went whole although it exceeded a limit: %s.%s", r.Whole, due)
	case r.Did == "", r.Did == "below":
		return "Nothing was due." + due
	}
	return fmt.Sprintf("Condensing: %s.%s", r.Did, due)
}

// times says how often, if it was more than once.
func times(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" %d times", n)
}
