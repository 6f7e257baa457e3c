package condense

// Pauses are what is known of clients that pause: how many pauses lasted until a prompt was to be touched for the n-th time, so that it stays
// in its provider's cache, and how many of those ended before the next time.
type Pauses struct{ reached, ended []int }

// Worth is what it saves to find a prompt in the cache, in prices of a touch, which reads it. One that would be condensed once it is cold is
// worth no more than that spares. A Target of 0 condenses nothing.
func (e Economics) Worth(tokens int) float64 {
	touch, cold := e.prompt(tokens, tokens), e.prompt(0, tokens)
	if touch <= 0 {
		return 0
	}
	if e.Target > 0 && float64(tokens) > leastGain*float64(e.Target) {
		cold = min(cold, e.Condensed(Moment{Total: tokens, Cold: true}))
	}
	return cold/touch - 1
}

// Touch reports whether a touch after so many others is expected to save more than it costs, which is then made: by how often clients came
// back after as many, at first taken to be every other time, and as long as all touches of a pause together cost no more than one return saves,
// however likely one is.
func (p *Pauses) Touch(before int, worth float64) bool {
	if float64(before+1) > worth {
		return false
	}
	for len(p.reached) <= before {
		p.reached, p.ended = append(p.reached, 0), append(p.ended, 0)
	}
	if float64(p.ended[before]+1)*worth <= float64(p.reached[before]+2) {
		return false
	}
	p.reached[before]++
	return true
}

// End notes that a client came back after so many touches.
func (p *Pauses) End(touches int) {
	if touches > 0 {
		p.ended[touches-1]++
	}
}
