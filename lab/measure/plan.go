package main

import (
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

// plan is a row of the cost table: a condenser and how it is set.
type plan struct {
	name      string
	condenser config.Condenser
	price     model.Price // of the requests' model
}

// plans lists the rows, the one without condensing first. A new condenser or pipeline is a new row.
func plans(maxTokens float64) []plan {
	rolling := func(kind string) config.Condenser {
		c := catalogue.Default(kind)
		c.MaxTokens = maxTokens
		return summarised(c)
	}
	shipped := summarised(config.Default().Condenser)
	excerpts := like(shipped, catalogue.TypeExcerpts)
	trim, lossless := catalogue.Default(catalogue.TypeToolOutputTrim), catalogue.Default(catalogue.TypeLosslessTrim)
	return []plan{
		{name: "no condensing", condenser: catalogue.Default(catalogue.TypeNoop)},
		{name: "default, as shipped", condenser: shipped},
		{name: "excerpts, when the default would", condenser: excerpts},
		{name: "tool_output_trim, then the default", condenser: pipeline(trim, shipped)},
		{name: "tool_output_trim, then excerpts, when the default would", condenser: pipeline(trim, excerpts)},
		{name: "lossless_trim, then excerpts, when the default would", condenser: pipeline(lossless, excerpts)},
		{name: "recent_events", condenser: catalogue.Default(catalogue.TypeRecentEvents)},
		{name: "tool_output_trim", condenser: trim},
		{name: "lossless_trim", condenser: catalogue.Default(catalogue.TypeLosslessTrim)},
		{name: "excerpts", condenser: rolling(catalogue.TypeExcerpts)},
		{name: "llm", condenser: rolling(catalogue.TypeLLM)},
	}
}

// like is a condenser of another type with the triggers of c.
func like(c config.Condenser, kind string) config.Condenser {
	out := catalogue.Default(kind)
	out.Trigger, out.MaxSize, out.MaxTokens, out.MinTokens, out.KeepFirst, out.MinimumProgress = c.Trigger, c.MaxSize, c.MaxTokens, c.MinTokens, c.KeepFirst, c.MinimumProgress
	return out
}

func pipeline(stages ...config.Condenser) config.Condenser {
	c := catalogue.Default(catalogue.TypePipeline)
	c.Condensers = stages
	return c
}

// summarised gives the condensers with a summariser the stage's own.
func summarised(c config.Condenser) config.Condenser {
	for i := range c.Condensers {
		c.Condensers[i] = summarised(c.Condensers[i])
	}
	if c.Entry().AsksModel() {
		c.LLMConfig = "cheap"
	}
	return c
}
