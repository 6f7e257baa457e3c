package main

import (
	"github.com/dewpoint-proxy/dewpoint/config"
)

// plan is a row of the cost table: a condenser and how it is set.
type plan struct {
	name      string
	condenser config.Condenser
}

// plans lists the rows, the one without condensing first. A new condenser or pipeline is a new row.
func plans(maxTokens float64) []plan {
	rolling := func(kind string) config.Condenser {
		c := config.NewCondenser(kind)
		c.MaxTokens = maxTokens
		return summarised(c)
	}
	shipped := summarised(config.Default().Condenser)
	excerpts := like(shipped, config.TypeExcerpts)
	trim, lossless := config.NewCondenser(config.TypeToolOutputTrim), config.NewCondenser(config.TypeLosslessTrim)
	return []plan{
		{"no condensing", config.NewCondenser(config.TypeNoop)},
		{"default, as shipped", shipped},
		{"excerpts, when the default would", excerpts},
		{"tool_output_trim, then the default", pipeline(trim, shipped)},
		{"tool_output_trim, then excerpts, when the default would", pipeline(trim, excerpts)},
		{"lossless_trim, then excerpts, when the default would", pipeline(lossless, excerpts)},
		{"recent_events", config.NewCondenser(config.TypeRecentEvents)},
		{"tool_output_trim", trim},
		{"lossless_trim", config.NewCondenser(config.TypeLosslessTrim)},
		{"excerpts", rolling(config.TypeExcerpts)},
		{"llm", rolling(config.TypeLLM)},
	}
}

// like is a condenser of another type with the triggers of c.
func like(c config.Condenser, kind string) config.Condenser {
	out := config.NewCondenser(kind)
	out.Trigger, out.MaxSize, out.MaxTokens, out.MinTokens, out.KeepFirst, out.MinimumProgress = c.Trigger, c.MaxSize, c.MaxTokens, c.MinTokens, c.KeepFirst, c.MinimumProgress
	return out
}

func pipeline(stages ...config.Condenser) config.Condenser {
	c := config.NewCondenser(config.TypePipeline)
	c.Condensers = stages
	return c
}

// summarised gives the condensers with a summariser the stage's own.
func summarised(c config.Condenser) config.Condenser {
	for i := range c.Condensers {
		c.Condensers[i] = summarised(c.Condensers[i])
	}
	switch c.Type {
	case config.TypeLLM, config.TypeStructuredSummary, config.TypeLLMAttention:
		c.LLMConfig = "cheap"
	}
	return c
}
