package gemini

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// assist begins the paths of Code Assist, which have no model: requests name it, and wrap the request itself.
const assist = "/v1internal"

// Servers implements dialect.Asker.
func (d *Dialect) Servers() dialect.Servers { return dialect.Servers{} }

// Place implements dialect.Asker: the path names the model, and whether the answer is streamed.
func (d *Dialect) Place(before string, q dialect.Question) (path, query string) {
	path = before
	if before != assist {
		path = before[:max(strings.LastIndex(before, "/models/"), 0)] + "/models/" + url.PathEscape(strings.TrimPrefix(q.Model, "models/"))
	}
	if q.Streamed {
		return path + ":streamGenerateContent", "alt=sse"
	}
	return path + ":generateContent", ""
}

// Question implements dialect.Asker. It limits the thinking of models that know levels of it: a summary needs little, and it reduces the room for
// the answer.
func (d *Dialect) Question(q dialect.Question) dialect.Object {
	settings := dialect.Object{}
	if q.MaxOutput > 0 {
		settings["maxOutputTokens"] = q.MaxOutput
	}
	if q.Temperature != nil {
		settings["temperature"] = *q.Temperature
	}
	level := q.Effort
	if strings.Contains(q.Model, "gemini-3") {
		level = cmp.Or(level, "low")
	}
	if level != "" {
		settings["thinkingConfig"] = dialect.Object{"thinkingLevel": level}
	}
	said := func(text string) dialect.Object { return dialect.Object{"parts": []dialect.Object{{"text": text}}} }
	user := said(q.User)
	user["role"] = "user"
	out := dialect.Object{list: []dialect.Object{user}, "generationConfig": settings}
	if q.System != "" {
		out["systemInstruction"] = said(q.System)
	}
	if f := q.Function; f != nil {
		declared := f.In(dialect.Object{"parametersJsonSchema": dialect.Raw(f.JSON)})
		out["tools"] = []dialect.Object{{"functionDeclarations": []dialect.Object{declared}}}
		out["toolConfig"] = dialect.Object{"functionCallingConfig": dialect.Object{"mode": "ANY", "allowedFunctionNames": []string{f.Name}}}
	}
	if f := q.Format; f != nil {
		settings["responseMimeType"], settings["responseJsonSchema"] = "application/json", dialect.Raw(f.JSON)
	}
	if q.Before == assist {
		return dialect.Object{"model": q.Model, "request": out}
	}
	return out
}
