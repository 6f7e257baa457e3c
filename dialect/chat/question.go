package chat

import (
	"cmp"
	"math"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
)

// usualLimit returns the parameter that limits the answer of a model, by the model's name.
func usualLimit(model string) string {
	if agents.RefusesMaxTokens(model) {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// Servers implements dialect.Asker.
func (d *Dialect) Servers() dialect.Servers {
	return dialect.Servers{Differ: true, Limits: limits[:]}
}

// Place implements dialect.Asker.
func (d *Dialect) Place(before string, _ dialect.Question) (path, query string) {
	return before + Path, ""
}

// Question implements dialect.Asker.
func (d *Dialect) Question(q dialect.Question) dialect.Object {
	out := dialect.Object{"model": q.Model}
	var said []dialect.Object
	if q.System != "" {
		said = append(said, dialect.Object{"role": cmp.Or(q.Role, "system"), "content": q.System})
	}
	out["messages"] = append(said, dialect.Object{"role": "user", "content": q.User})
	if q.MaxOutput > 0 {
		out[cmp.Or(q.Limit, usualLimit(q.Model))] = q.MaxOutput
	}
	if q.Temperature != nil {
		out["temperature"] = max(*q.Temperature, math.SmallestNonzeroFloat32) // some servers take 0 for their own default
	}
	if effort := cmp.Or(q.Effort, q.LeastEffort); effort != "" {
		out["reasoning_effort"] = effort
	}
	if q.Streamed {
		out["stream"], out["stream_options"] = true, dialect.Object{"include_usage": true}
	}
	if f := q.Function; f != nil {
		function := f.In(dialect.Object{"parameters": dialect.Raw(f.JSON)})
		out["tools"] = []dialect.Object{{"type": "function", "function": function}}
		out["tool_choice"] = dialect.Object{"type": "function", "function": dialect.Object{"name": f.Name}}
	}
	if f := q.Format; f != nil {
		schema := f.In(dialect.Object{"schema": dialect.Raw(f.JSON), "strict": true})
		out["response_format"] = dialect.Object{"type": "json_schema", "json_schema": schema}
	}
	return out
}
