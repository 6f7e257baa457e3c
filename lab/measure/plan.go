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
		return model(c)
	}
	masking := config.NewCondenser(config.TypeObservationMasking)
	return []plan{
		{"no condensing", config.NewCondenser(config.TypeNoop)},
		{"default, as shipped", model(config.Default().Condenser)},
		{"observation_masking", masking},
		{"observation_masking, stride 1", stride(masking, 1)},
		{"browser_output", config.NewCondenser(config.TypeBrowserOutput)},
		{"recent_events", config.NewCondenser(config.TypeRecentEvents)},
		{"conversation_window", config.NewCondenser(config.TypeConversationWindow)},
		{"tool_output_trim", config.NewCondenser(config.TypeToolOutputTrim)},
		{"amortized_forgetting", rolling(config.TypeAmortizedForgetting)},
		{"llm", rolling(config.TypeLLM)},
		{"structured_summary", rolling(config.TypeStructuredSummary)},
		{"llm_attention", rolling(config.TypeLLMAttention)},
		{"tool_output_trim, llm", pipeline(config.NewCondenser(config.TypeToolOutputTrim), rolling(config.TypeLLM))},
		{"browser_output, llm", pipeline(config.NewCondenser(config.TypeBrowserOutput), rolling(config.TypeLLM))},
		{"observation_masking, llm", pipeline(masking, rolling(config.TypeLLM))},
		{"tool_output_trim, observation_masking, llm", pipeline(
			config.NewCondenser(config.TypeToolOutputTrim), masking, rolling(config.TypeLLM))},
	}
}

func stride(c config.Condenser, events int) config.Condenser {
	c.Stride = events
	return c
}

func pipeline(stages ...config.Condenser) config.Condenser {
	c := config.NewCondenser(config.TypePipeline)
	c.Condensers = stages
	return c
}

// model gives the condensers with a summariser the stage's own.
func model(c config.Condenser) config.Condenser {
	for i := range c.Condensers {
		c.Condensers[i] = model(c.Condensers[i])
	}
	switch c.Type {
	case config.TypeLLM, config.TypeStructuredSummary, config.TypeLLMAttention:
		c.LLMConfig = "cheap"
	}
	return c
}
