package overflow

// maxCount is the most tokens that a count is believed to be. Above it the text is no count.
const maxCount = 1 << 30

// counts is what the words of an error say in numbers. The zero of each is: not said.
type counts struct {
	limit, prompt, output int
	total                 int // prompt and output together
	atLeast               bool
}

// with adds a number under the name that a row has for it. A prompt told in parts is their sum.
func (c counts) with(name string, n int) counts {
	switch name {
	case "limit":
		c.limit = n
	case "prompt":
		c.prompt = min(c.prompt+n, maxCount)
	case "prompt+":
		c.prompt, c.atLeast = n, true
	case "output":
		c.output = n
	case "total":
		c.total = n
	}
	return c
}

func (c counts) overflow() Overflow {
	o := Overflow{Limit: c.limit, Prompt: c.prompt, AtLeast: c.atLeast, Output: c.output}
	if o.Prompt == 0 && o.Output > 0 && c.total > o.Output {
		o.Prompt = c.total - o.Output
	}
	o.ByOutput = o.byOutput()
	return o
}

func (o Overflow) byOutput() bool {
	switch {
	case o.Limit == 0 || o.Output == 0:
		return false
	case o.Output >= o.Limit:
		return true
	default:
		return o.Prompt > 0 && o.Prompt <= o.Limit/2
	}
}
