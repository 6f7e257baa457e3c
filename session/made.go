package session

// Made is what a condensation put in the place of what it hid.
type Made string

// The ways of a condensation.
const (
	MadeSummary     Made = "summary"     // a model's summary
	MadeExcerpts    Made = "excerpts"    // lines of what it hid; where a summary was due, the next condensation makes up for it
	MadePlain       Made = "plain"       // nothing: its strategy makes no summary
	MadeProvisional Made = "provisional" // nothing yet: the summary that was due failed, and the next condensation makes up for it
	MadeTrim        Made = "trim"        // parts of single messages
)

// Asked is how the model was asked that wrote a summary.
type Asked string

// The ways to ask for a summary.
const (
	AskedCold         Asked = "cold"           // by a prompt of its own
	AskedCached       Asked = "cached"         // behind the client's own prompt, which the provider's cache had
	AskedCachedInVain Asked = "cached_in_vain" // so, but what came was no good, so that it was asked by a prompt of its own
)

// Asked tells which of them it was; empty where no model wrote it.
func (c *Condensation) Asked() Asked {
	switch {
	case c.Model == "":
		return ""
	case c.Rode == (Usage{}):
		return AskedCold
	case c.Calls == 1:
		return AskedCached
	}
	return AskedCachedInVain
}

// Made tells which of them it was.
func (c *Condensation) Made() Made {
	switch {
	case len(c.Forgotten) == 0:
		return MadeTrim
	case c.Model == "" && c.SummaryTokens > 0:
		return MadeExcerpts
	case c.Provisional:
		return MadeProvisional
	case c.SummaryTokens == 0:
		return MadePlain
	}
	return MadeSummary
}
