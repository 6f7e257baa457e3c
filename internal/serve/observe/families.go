package observe

import "github.com/prometheus/client_golang/prometheus"

// Histogram buckets for the proxy's overhead, for answers and for store calls, in seconds.
var (
	overheadBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}
	answerBuckets   = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320}
	storeBuckets    = []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, .5, 1}
)

// traffic holds metrics of requests.
type traffic struct {
	inFlight                     prometheus.Gauge
	gone                         prometheus.Counter
	requests, tokens, unread     *prometheus.CounterVec
	reckoned, misses             *prometheus.CounterVec
	seconds, firstByte, overhead *prometheus.HistogramVec
}

func newTraffic(f *families) traffic {
	return traffic{
		inFlight: f.gauge("requests_in_flight", "Requests in progress.").WithLabelValues(),
		requests: f.counter("requests_total",
			"Completed requests, by status class and error code. The code is empty if there was no error.",
			"tenant", "dialect", "model", "status", "code"),
		gone: f.counter("client_gone_total", "Clients that disconnected before they were answered.").WithLabelValues(),
		seconds: f.seconds("request_seconds", "Time from a request's header to the end of its answer.",
			answerBuckets, "tenant"),
		firstByte: f.seconds("upstream_first_byte_seconds", "Time from the call upstream to the first byte of the answer's body.",
			answerBuckets, "tenant"),
		overhead: f.seconds("overhead_seconds",
			"Time added by the proxy, without condensing: from a request's last byte to the call upstream (request), and how long the end of the answer was held back for the log (answer).",
			overheadBuckets, "tenant", "part"),
		tokens: f.counter("tokens_total",
			"Prompt tokens that clients sent (in) and that were forwarded after condensing (forwarded), as counted by the proxy, and what upstream charges for (prompt; cached, which is part of prompt; completion), as it reported or else as reckoned.",
			"tenant", "model", "stage"),
		misses: f.counter("cache_misses_total",
			"Answered requests of which upstream read less from its prompt cache than the request before could have put there, and why.", "tenant", "cause"),
		reckoned: f.counter("reckoned_total", "Charged requests whose usage upstream did not report, or not in full, so that it is reckoned.", "tenant", "model"),
		unread: f.counter("unread_total",
			"Bodies that were passed through without being read although their path is supported, and why: encoding, unsupported or path.",
			"tenant", "why"),
	}
}

// savings holds metrics of what condensing saved and cost, and of the proxy's own model calls. The net saving is the difference.
type savings struct {
	tokens, spentTokens, observedTokens     *prometheus.CounterVec
	usd, spentUSD, observedUSD, upstreamUSD *prometheus.CounterVec
	callFailures, callTokens                *prometheus.CounterVec
	callSeconds                             *prometheus.HistogramVec
}

func newSavings(f *families) savings {
	return savings{
		tokens: f.counter("saved_tokens_total", "Prompt tokens that clients sent and that were not forwarded.", "tenant", "model"),
		spentTokens: f.counter("spent_tokens_total",
			"Tokens that condensing cost: tokens of the proxy's own calls (summariser), and tokens by which requests became longer (request).",
			"tenant", "model", "kind"),
		usd: f.counter("saved_usd_total",
			"By how much requests were cheaper than if they had been forwarded unchanged with an ideal prompt cache. Models with a known price.",
			"tenant", "model"),
		spentUSD: f.counter("spent_usd_total",
			"What condensing cost: the proxy's own calls (summariser), and requests that cost more because the prompt cache had to be written again (cache).",
			"tenant", "model", "kind"),
		upstreamUSD: f.counter("upstream_usd_total",
			"What upstream charges for answered requests, by the usage that it reports or else as reckoned. Models with a known price, without subscriptions.", "tenant", "model"),
		observedTokens: f.counter("observed_saved_tokens_total",
			"Estimate for tenants that only observe: prompt tokens that would not have been forwarded.", "tenant", "model"),
		observedUSD: f.counter("observed_saved_usd_total",
			"Estimate for tenants that only observe: by how much requests would have been cheaper (saved), or more expensive because the prompt cache had to be written again (cache). Calls to a summariser are not included.",
			"tenant", "model", "kind"),
		callSeconds: f.seconds("summariser_seconds", "Duration of calls to a summariser, by outcome: replied or failed.",
			answerBuckets, "tenant", "outcome"),
		callFailures: f.counter("summariser_failures_total",
			"Calls to a summariser without a reply, unusable replies, and prompts that could not be built, by kind.",
			"tenant", "kind"),
		callTokens: f.counter("summariser_tokens_total", "Tokens of the proxy's own calls, as reported: prompt, cached, completion.",
			"tenant", "model", "kind"),
	}
}

// history holds metrics of how requests were recognised and condensed.
type history struct {
	recognised, sessions, threads, condensed, redeemed, asked, recordLines, whole *prometheus.CounterVec
	relieved, compacted, hidden, notKept, findings                                *prometheus.CounterVec
	seconds                                                                       *prometheus.HistogramVec
}

func newHistory(f *families) history {
	return history{
		recognised: f.counter("recognised_total", "Requests by how their session was recognised: key, prefix, trace or new.", "tenant", "source"),
		sessions:   f.counter("sessions_begun_total", "Sessions started.", "tenant"),
		threads: f.counter("threads_begun_total",
			"Threads started, by kind: new, fork of another thread or link to one; and why, if some of their messages were known.",
			"tenant", "kind", "cause"),
		condensed: f.counter("condensations_total",
			"Condensations, by outcome: condensed, fallback (without a summary), failed (nothing forgotten), observed (only reported), prepared and not_prepared (a summary written before it is needed).",
			"tenant", "condenser", "reason", "outcome"),
		redeemed: f.counter("provisional_summarised_total",
			"Condensations that lacked a summary (outcome fallback) and got it with a later condensation.", "tenant"),
		asked: f.counter("summaries_total",
			"Condensations with a model's summary, by how it was requested: cold (with a prompt of its own), cached (after the client's own prompt, which was in the provider's cache), cached_in_vain (like cached without success, then with a prompt of its own).",
			"tenant", "asked"),
		recordLines: f.counter("record_lines_total",
			"Lines of models' records that name something, by whether they stayed: grounded, or struck (they name what the model was not shown).",
			"tenant", "outcome"),
		whole: f.counter("over_limit_whole_total",
			"Requests that were not condensed although they exceeded a limit of their condenser, and why: failed, cooling, uncut, loop, locked, refused, again, held_out, observed or off.",
			"tenant", "why"),
		seconds:  f.seconds("condense_seconds", "How long a request waited for a condensation.", answerBuckets, "tenant"),
		relieved: f.counter("overflows_relieved_total", "Requests that exceeded upstream's window and were condensed and sent again.", "tenant"),
		compacted: f.counter("compactions_total",
			"Compactions made for clients: made, excerpts (no model wrote a record), failed, refused (a client sent back a compaction that was not made here).",
			"tenant", "outcome"),
		findings: f.counter("findings_total",
			"Condensations with findings for a tenant's memory: promised, delivered, failed (one attempt), and lost: full, store, expired, gone.",
			"tenant", "outcome"),
		hidden: f.counter("hidden_calls_total", "Calls to the proxy's own tools that were removed from answers and handled.", "tenant"),
		notKept: f.counter("answers_not_kept_total",
			"Answers that were too long, or for which limits.bytes_in_flight had no room, to handle calls to the proxy's own tools in them.", "tenant"),
	}
}
