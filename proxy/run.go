package proxy

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// Run is one run of an agent, whose requests have a base path of their own: RunPath and the run's id.
type Run struct {
	Observe bool                            // forward its requests unchanged
	Begin   func() (ended func(*Record))    // called with each request, and the function at its end
	Spent   func(c limit.Call)              // called with each call of the proxy's own
	Totals  func() (text []byte, err error) // as JSON
}

// RunPath precedes the id of a run in the path of a request.
const RunPath = "/run/"

// runPath matches the path of a run's request. An upstream's own paths below /run are passed through: they have no segment of this form.
var runPath = regexp.MustCompile(`^` + RunPath + `([A-Z2-7]{26})(/.*)?$`)

// readHeader reads the request line and the header, and finds the run that the request belongs to. It reports whether it has answered with
// the run's totals.
func (r *request) readHeader(ctx *fasthttp.RequestCtx) (answered bool, err error) {
	path := string(ctx.URI().PathOriginal())
	found := runPath.FindStringSubmatch(path)
	if found != nil {
		path = found[2]
	}
	r.accepted = accepted{arrival: r.arrival, params: r.live.readParams(ctx, path)}
	if found == nil {
		return false, nil
	}
	run, known := r.server.run(found[1], ctx.RemoteAddr())
	if !known {
		return false, r.refuseEarly(ctx, errUnknownRun)
	}
	r.run = &run
	if r.params.method == http.MethodGet && strings.Trim(path, "/") == "" {
		return true, r.answerTotals(ctx)
	}
	return false, nil
}

// run returns the run with an id, and whether there is one for a client with this address. Runs are only for this machine.
func (s *Server) run(id string, from net.Addr) (run Run, known bool) {
	client, _ := from.(*net.TCPAddr)
	if s.o.Runs == nil || client == nil || !client.IP.IsLoopback() {
		return Run{}, false
	}
	return s.o.Runs(id)
}

// answerTotals answers a request for a run's totals. It needs no key, since a run's id is not guessed.
func (r *request) answerTotals(ctx *fasthttp.RequestCtx) error {
	text, err := r.run.Totals()
	if err != nil {
		return fmt.Errorf("totals of a run: %w", err)
	}
	r.discardBody(ctx)
	ctx.SetContentType("application/json")
	ctx.SetBody(text)
	r.recorder.end(http.StatusOK, "")
	return nil
}
