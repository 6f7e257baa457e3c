package responses

import (
	"cmp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// Servers implements dialect.Asker.
func (d *Dialect) Servers() dialect.Servers {
	return dialect.Servers{Limits: []string{"max_output_tokens"}}
}

// Place implements dialect.Asker.
func (d *Dialect) Place(before string, _ dialect.Question) (path, query string) {
	return before + Path, ""
}

// Question implements dialect.Asker.
func (d *Dialect) Question(q dialect.Question) dialect.Object {
	said := dialect.Object{"type": "message", "role": "user", "content": []dialect.Object{{"type": "input_text", "text": q.User}}}
	out := dialect.Object{"model": q.Model, "input": []dialect.Object{said}, "stream": true, "store": false} // some servers require false
	if q.System != "" {
		out["instructions"] = q.System
	}
	if q.Temperature != nil {
		out["temperature"] = *q.Temperature
	}
	if q.MaxOutput > 0 {
		out["max_output_tokens"] = q.MaxOutput
	}
	if effort := cmp.Or(q.Effort, q.LeastEffort); effort != "" {
		out["reasoning"] = dialect.Object{"effort": effort}
	}
	if f := q.Function; f != nil {
		out["tools"] = []dialect.Object{f.In(dialect.Object{"type": "function", "parameters": dialect.Raw(f.JSON), "strict": false})}
		out["tool_choice"] = dialect.Object{"type": "function", "name": f.Name}
	}
	if f := q.Format; f != nil {
		out["text"] = dialect.Object{"format": f.In(dialect.Object{"type": "json_schema", "schema": dialect.Raw(f.JSON), "strict": true})}
	}
	return out
}
