package condense

// Bounds of the answer to a probe, in tokens. They leave room for a model that reasons, and for arguments or a list.
const (
	probeOutput     = 64
	probeFormOutput = 1024
)

// Probe returns a small request in the form in which a condenser of a type asks a model: structured_summary demands a function call,
// llm_attention a JSON schema, all others text. check returns why a condenser could not use the reply. The caller sets Endpoint and Model.
func Probe(condenserType string) (r Request, check func(Reply) error) {
	switch condenserType {
	case "structured_summary":
		r = Request{
			System: "You write down the state of an agent's work. Answer by calling " + stateFunction + " once, and by nothing else.",
			User:   "The user has asked: \"Are you there?\" Nothing else has happened yet. Call " + stateFunction + " now.", MaxOutput: probeFormOutput,
		}
		structured{}.shape(&r)
		return r, func(answer Reply) error {
			_, err := structured{}.record(answer)
			return err
		}
	case "llm_attention":
		r = Request{
			System: "You rank events by their ids. Answer with JSON: {\"ids\": [...]}, ids only, the most important first, each once.",
			User:   "Event 1: the user has asked, \"Are you there?\" Event 2: a clock has ticked. Rank the ids 1 and 2 now.", MaxOutput: probeFormOutput,
			Format: &Schema{Name: "event_ranking", JSON: []byte(rankingSchema)},
		}
		return r, func(answer Reply) error {
			_, err := readRanking(answer)
			return err
		}
	}
	return Request{System: "Answer in one word.", User: "Are you there?", MaxOutput: probeOutput}, func(Reply) error { return nil }
}
