// Package capacity estimates what sessions take in Redis.
package capacity

// Load is the sessions of a deployment.
type Load struct {
	Sessions int  // that begin in a day
	Messages int  // of a session
	Bytes    int  // of a message, on average, as JSON
	Days     int  // that a session is kept after its last message: store.ttl
	Content  bool // store.content: the messages are kept
}

// Part is what a kind of record takes.
type Part struct {
	Name        string
	Bytes, Keys float64
}

// Estimate is what a load takes in Redis once as many sessions expire as begin.
type Estimate struct {
	Parts       []Part // of the data
	Bytes, Keys float64

	Requests float64 // a second, on average over the day
	Commands float64 // a second, with those inside of scripts
}

// Names is the part that is kept for NameDays days whatever store.ttl is.
const (
	Names    = "names of requests"
	NameDays = 45
)

// What records take, in bytes as MEMORY USAGE of Redis 7.0 counts them. lab/measure compares them with a server that has recorded runs.
const (
	keyOverhead = 50 // of a key in the server's own tables

	logMessage   = 165  // of a message in a log, beside its content
	contentShare = 0.35 // stored, of a byte of content
	hashMessage  = 95   // of a message in a log without content

	threadBytes     = 1000 // a thread's record without summaries
	recordMessage   = 380  // excerpts and summaries, condensed by price, for each message behind the first ones
	recordFrom      = 30   // messages, before which little is condensed
	traceBytes      = 120
	tracesMessage   = 1.5
	tracesThread    = 96  // newest, which a thread keeps: session.MaxRecent
	tracesLasting   = 0.1 // of a message
	placeBytes      = 120
	placesThread    = 6
	placesEvery     = 16 // messages
	sessionBytes    = 500
	answerMessage   = 5
	requestBytes    = 160 // the record of a request
	nameBytes       = 40  // of a request, in the list of its day
	nameKeys        = 16  // of a day
	commandsRequest = 30
	secondsOfDay    = 24 * 60 * 60
)

// Redis estimates a load. A request has two new messages: the model's answer to the one before, and a result or what a person said.
func Redis(l Load) Estimate {
	n := float64(l.Messages)
	kept := float64(l.Sessions) * float64(l.Days)
	logs := n * hashMessage
	if l.Content {
		logs = n * (logMessage + contentShare*float64(l.Bytes))
	}
	traces, places := min(tracesMessage*n, tracesThread)+tracesLasting*n, placesThread+float64(l.Messages/placesEvery)
	e := Estimate{Parts: []Part{
		{"messages", kept * logs, kept},
		{"summaries and excerpts", kept * (threadBytes + recordMessage*max(n-recordFrom, 0)), kept},
		{"traces and positions", kept * (traceBytes*traces + placeBytes*places), kept * (traces + places)},
		{"records of requests", kept * n / 2 * requestBytes, kept},
		{"sessions", kept * (sessionBytes + answerMessage*n), 2 * kept},
		{Names, float64(l.Sessions) * NameDays * n / 2 * nameBytes, NameDays * nameKeys},
	}}
	for i := range e.Parts {
		e.Parts[i].Bytes += keyOverhead * e.Parts[i].Keys
		e.Bytes += e.Parts[i].Bytes
		e.Keys += e.Parts[i].Keys
	}
	e.Requests = float64(l.Sessions) * n / 2 / secondsOfDay
	e.Commands = commandsRequest * e.Requests
	return e
}
