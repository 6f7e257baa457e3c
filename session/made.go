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
