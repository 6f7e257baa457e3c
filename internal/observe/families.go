package observe

import "github.com/prometheus/client_golang/prometheus"

// Buckets of our own time, of answers, and of calls of a store, in seconds.
func overheadBuckets() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}
}

func answerBuckets() []float64 {
	return []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320}
}

func storeBuckets() []float64 {
	return []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, .5, 1}
}

// traffic is what goes through.
type traffic struct {
	inFlight  prometheus.Gauge
	requests  *prometheus.CounterVec
	gone      prometheus.Counter
	seconds   *prometheus.HistogramVec
	firstByte *prometheus.HistogramVec
	overhead  *prometheus.HistogramVec
	tokens    *prometheus.CounterVec
	limited   *prometheus.CounterVec
	unread    *prometheus.CounterVec
}

func newTraffic(f *families) traffic {
	return traffic{
		inFlight: f.gauge("requests_in_flight", "Requests that have come and are not over.").WithLabelValues(),
		requests: f.counter("requests_total",
			"Requests that are over, by status class and error code. The code is empty where nothing went wrong.",
			"tenant", "dialect", "model", "status", "code"),
		gone:    f.counter("client_gone_total", "Clients that left before they were answered.").WithLabelValues(),
		seconds: f.seconds("request_seconds", "From a request's header to the end of its answer.", answerBuckets(), "tenant"),
		firstByte: f.seconds("upstream_first_byte_seconds", "From the call upstream to the first byte of the answer's body.",
			answerBuckets(), "tenant"),
		overhead: f.seconds("overhead_seconds",
			"Time of our own, condensing apart: from a request's last byte to the call upstream (request), and how long the end of the answer was held back for the log (answer).",
			overheadBuckets(), "tenant", "part"),
		tokens: f.counter("tokens_total",
			"Prompt tokens that clients sent (in) and that were forwarded after condensing (forwarded), by our count, and what upstream reported (prompt, cached, which is part of it, completion).",
			"tenant", "model", "stage"),
		unread: f.counter("unread_total", "Bodies that passed unread on a path that is read, and why: encoding, unsupported or path.",
			"tenant", "why"),
		limited: f.counter("limited_total", "Requests refused for a limit of their tenant: concurrent, requests, tokens, body, share, budget or session_budget.",
			"tenant", "limit"),
	}
}

// savings is what condensing saved and cost. Net is one less the other.
type savings struct {
	tokens      *prometheus.CounterVec
	spentTokens *prometheus.CounterVec
	usd         *prometheus.CounterVec
	spentUSD    *prometheus.CounterVec
	upstreamUSD *prometheus.CounterVec

	observedTokens, observedUSD *prometheus.CounterVec
}

func newSavings(f *families) savings {
	return savings{
		tokens: f.counter("saved_tokens_total", "Prompt tokens that clients sent and that were not forwarded.", "tenant", "model"),
		spentTokens: f.counter("spent_tokens_total",
			"Tokens that condensing cost: of own calls (summariser, keep_warm), and by which requests became longer (request).",
			"tenant", "model", "kind"),
		usd: f.counter("saved_usd_total",
			"What requests cost less than they would have as they came, an ideal prompt cache included. Models with a known price.",
			"tenant", "model"),
		spentUSD: f.counter("spent_usd_total",
			"What condensing cost: own calls (summariser, keep_warm), and requests that cost more because the prompt cache had to be written again (cache).",
			"tenant", "model", "kind"),
		upstreamUSD: f.counter("upstream_usd_total",
			"What upstream charges for answered requests, by the usage that it reports. Models with a known price.", "tenant", "model"),
		observedTokens: f.counter("observed_saved_tokens_total",
			"An estimate, while a tenant only observes: prompt tokens that would not have been forwarded.", "tenant", "model"),
		observedUSD: f.counter("observed_saved_usd_total",
			"An estimate likewise: what requests would have cost less (saved), and more because the prompt cache had to be written again (cache). Calls of a summariser are not in it.",
			"tenant", "model", "kind"),
	}
}

// history is what was recognised and condensed.
type history struct {
	recognised *prometheus.CounterVec
	sessions   *prometheus.CounterVec
	threads    *prometheus.CounterVec
	condensed  *prometheus.CounterVec
	redeemed   *prometheus.CounterVec
	asked      *prometheus.CounterVec
	whole      *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	relieved   *prometheus.CounterVec
	compacted  *prometheus.CounterVec
	hidden     *prometheus.CounterVec
	repeated   *prometheus.CounterVec
	findings   *prometheus.CounterVec
}

func newHistory(f *families) history {
	return history{
		recognised: f.counter("recognised_total", "Requests recognised, by what: key, prefix, trace or new.", "tenant", "source"),
		sessions:   f.counter("sessions_begun_total", "Sessions begun.", "tenant"),
		threads:    f.counter("threads_begun_total", "Threads begun, by how: new, the fork of another, or linked to another; and why, where some of it was known.", "tenant", "kind", "cause"),
		condensed: f.counter("condensations_total",
			"Condensations, by outcome: condensed, fallback (without a summary), failed (nothing forgotten), observed (only reported), prepared and not_prepared (a summary before it is needed).",
			"tenant", "condenser", "reason", "outcome"),
		redeemed: f.counter("provisional_summarised_total",
			"Condensations without the summary that was due (outcome fallback) whose summary a later one brought.", "tenant"),
		asked: f.counter("summaries_total",
			"Condensations with a model's summary, by how it was asked: cold (by a prompt of its own), cached (behind the client's own prompt, which the provider's cache had), cached_in_vain (so, and then by a prompt of its own).",
			"tenant", "asked"),
		whole: f.counter("over_limit_whole_total",
			"Requests for which nothing was condensed although a limit of their condenser was exceeded, and why: failed, cooling, uncut, loop, locked, refused, again, held_out, observed or off.",
			"tenant", "why"),
		seconds:  f.seconds("condense_seconds", "How long a request waited for a condensation.", answerBuckets(), "tenant"),
		relieved: f.counter("overflows_relieved_total", "Requests that overflowed upstream's window, condensed and sent again.", "tenant"),
		compacted: f.counter("compactions_total",
			"Requests that had to do with compactions of our own: made, failed (no record came), refused (what came back for one was not made here).",
			"tenant", "outcome"),
		findings: f.counter("findings_total",
			"Condensations with findings for a tenant's memory: promised, delivered, failed (a try), and what was lost: full, store, expired, gone.",
			"tenant", "outcome"),
		hidden: f.counter("hidden_calls_total", "Calls of the proxy's own tools that were taken out of answers and met.", "tenant"),
		repeated: f.counter("repeated_calls_total",
			"Requests of a model that has made the same call with the same result as often as limits.repeated_calls.after, or more often.", "tenant"),
	}
}

// own is our own model calls.
type own struct {
	seconds  *prometheus.HistogramVec
	failures *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	warmed   *prometheus.CounterVec
}

func newOwn(f *families) own {
	return own{
		warmed: f.counter("keep_warm_touches_total",
			"Calls that keep a prompt in its provider's cache while its client pauses: kept, cold (the cache had lost it), failed, spent (not made: the day's budget is spent).",
			"tenant", "outcome"),
		seconds: f.seconds("summariser_seconds", "Calls of a summariser, by outcome: replied or failed.", answerBuckets(),
			"tenant", "outcome"),
		failures: f.counter("summariser_failures_total",
			"Calls of a summariser that gave no reply, replies that were no good, and prompts that could not be made, by kind.",
			"tenant", "kind"),
		tokens: f.counter("summariser_tokens_total", "Tokens of own calls, as reported: prompt, cached, completion.",
			"tenant", "model", "kind"),
	}
}

// storeFamilies is how the store does.
type storeFamilies struct {
	seconds *prometheus.HistogramVec
	errors  *prometheus.CounterVec
	losses  *prometheus.CounterVec
}

func newStoreFamilies(f *families) storeFamilies {
	return storeFamilies{
		seconds: f.seconds("store_seconds", "Calls of the store.", storeBuckets(), "op"),
		errors: f.counter("store_errors_total",
			"Calls of the store that failed. What a store answers (not found, stale, locked) is no failure.", "op"),
		losses: f.counter("store_losses_total", "Requests not recognised and writes lost because the store was away.", "op"),
	}
}
