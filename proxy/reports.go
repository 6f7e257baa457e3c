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
	price    model.Price
	reported *atomic.Bool
	about    Record // whose request it was: tenant, model, client and plan
	arm      string
}

// reportKey names a request among those of its gateway.
type reportKey struct {
	gateway credential
	name    string
}

// keepForReport keeps the answered request under its names. Of a session, the newest one counts.
func (r *request) keepForReport() {
	record := &r.recorder.record
	kept := reportable{
		form: r.form.WithoutText(), counted: r.form.Sent().Tokens, price: r.parsed.model.Price, reported: new(atomic.Bool), arm: record.Turn.Arm,
		about: Record{Tenant: record.Tenant, Condenser: record.Condenser, Model: record.Model, Asked: Asked{Agent: record.Asked.Agent, Plan: record.Asked.Plan}},
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

// takeReport takes in what a gateway reports of a request's usage, and returns why it is not used; empty: it is. Other replicas do not know the
// request.
func (r *request) takeReport() string {
	report, err := plug.ReadUsage(r.body.bytes)
	if err != nil {
		return whyOf(err)
	}
	kept, known := r.server.reportable.Get(reportKey{r.gateway, report.ID})
	if !known {
		kept, known = r.server.reportable.Get(reportKey{r.gateway, report.Session})
	}
	usage := r.live.readUsage(report)
	switch {
	case !known:
		return reportUnknown
	case usage == nil:
		return reportInvalid
	case !kept.reported.CompareAndSwap(false, true):
		return reportTwice
	}
	kept.form.Used(kept.counted, *usage)
	kept.record(&r.recorder.record, *usage)
	return ""
}

// record records the usage as that of the tenant, the client and the plan of the request that is reported.
func (k *reportable) record(in *Record, usage session.Usage) {
	in.Tenant, in.Condenser, in.Model = k.about.Tenant, k.about.Condenser, k.about.Model
	in.Asked.Agent, in.Asked.Plan = k.about.Asked.Agent, k.about.Asked.Plan
	in.Reported = &Reported{
		Bill: Bill{Usage: usage, Reported: true, Priced: k.price.Known(), Pico: k.price.Pico(model.Usage(usage))}, Arm: k.arm,
	}
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
