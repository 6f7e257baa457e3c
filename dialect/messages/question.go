package messages

import (
	"cmp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// Servers implements dialect.Asker. The header has the version of the API.
func (d *Dialect) Servers() dialect.Servers {
	return dialect.Servers{Limits: []string{"max_tokens"}, Required: true, Header: "Anthropic-Version:2023-06-01"}
}

// Place implements dialect.Asker.
func (d *Dialect) Place(before string, _ dialect.Question) (path, query string) {
	return before + Path, ""
}

// Question implements dialect.Asker. A required format of the text becomes the schema of a tool's arguments, which all models support.
func (d *Dialect) Question(q dialect.Question) dialect.Object {
	said := dialect.Object{"role": "user", "content": []dialect.Object{{"type": "text", "text": q.User}}}
	out := dialect.Object{"model": q.Model, "max_tokens": q.MaxOutput, "stream": true, "messages": []dialect.Object{said}}
	if q.System != "" {
		out["system"] = q.System
	}
	if q.Temperature != nil {
		out["temperature"] = *q.Temperature
	}
	if q.Effort != "" {
		out["output_config"] = dialect.Object{"effort": q.Effort}
	}
	if f := cmp.Or(q.Function, q.Format); f != nil {
		out["tools"] = []dialect.Object{f.In(dialect.Object{"input_schema": dialect.Raw(f.JSON)})}
		out["tool_choice"] = dialect.Object{"type": "tool", "name": f.Name}
	}
	return out
}
