package proxy

import (
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/proxy/plug"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// maxReportable is how many answered requests of gateways are kept for a report of their usage.
const maxReportable = 1024

// reportable is a request that a gateway was answered, for a report of what it used.
type reportable struct {
	form     *engine.Form // without text
	counted  int          // tokens that were forwarded, by our own count
	tenant   string       // that the gateway acted for
	model    string       // for metrics
	price    model.Price
	reported *atomic.Bool
}

// reportKey names a request among those of its gateway.
type reportKey struct {
	gateway credential
	name    string
}

// keepForReport keeps the answered request under its names. Of a session, the newest one counts.
func (r *request) keepForReport() {
	kept := reportable{
		form: r.form.WithoutText(), counted: r.form.Sent().Tokens,
		tenant: r.tenant.Name, model: r.recorder.record.Model, price: r.parsed.model.Price, reported: new(atomic.Bool),
	}
	for _, name := range append(r.names, string(r.form.Place().Thread.Session)) {
		if name != "" {
			r.server.reportable.Add(reportKey{r.gateway, name}, kept)
		}
	}
}

// Why a report is not used.
const (
	reportUnknown = "unknown_request"
	reportTwice   = "already_reported"
	reportInvalid = "invalid_usage"
)

// takeReport takes in what a gateway reports of a request's usage, and returns the answer. Other replicas do not know the request.
func (r *request) takeReport() []byte {
	report, err := plug.ReadUsage(r.body.bytes)
	if err != nil {
		return plug.WriteUsage(whyOf(err))
	}
	kept, known := r.server.reportable.Get(reportKey{r.gateway, report.ID})
	if !known {
		kept, known = r.server.reportable.Get(reportKey{r.gateway, report.Session})
	}
	usage := r.live.readUsage(report)
	switch {
	case !known:
		return plug.WriteUsage(reportUnknown)
	case usage == nil:
		return plug.WriteUsage(reportInvalid)
	case !kept.reported.CompareAndSwap(false, true):
		return plug.WriteUsage(reportTwice)
	}
	kept.form.Used(kept.counted, *usage)
	r.recorder.record.Tenant, r.recorder.record.Model = kept.tenant, kept.model
	r.recorder.record.Reported = &Reported{Usage: *usage, Charged: kept.price.Call(model.Usage(*usage))}
	return plug.WriteUsage("")
}

// readUsage reads a reported usage as the tee of its protocol reads that of an answer; nil: it has none.
func (l *live) readUsage(report plug.Usage) *session.Usage {
	name := map[plug.Form]string{plug.FormChat: "chat", plug.FormMessages: "messages", plug.FormItems: "responses"}[report.Form]
	for _, d := range l.Dialects {
		if d.Name() == name {
			return readAnswerUsage(d, report.Answer)
		}
	}
	return nil
}

func readAnswerUsage(d dialect.Dialect, answer []byte) *session.Usage {
	tee := d.Tee(false)
	tee.Write(answer)
	u := tee.Answer().Usage
	if u == nil || u.Input < 0 || u.Output < 0 || u.Input > maxCharged || u.Output > maxCharged {
		return nil
	}
	return u
}
