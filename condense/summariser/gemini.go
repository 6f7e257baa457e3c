package summariser

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// assist begins the paths of Code Assist, which have no model: requests name it, and wrap the request itself.
const assist = "/v1internal"

// endpointOf returns where a call goes. In Gemini's API the path names the model, and whether the answer is streamed.
func endpointOf(r condense.Request, streamed bool) condense.Endpoint {
	to := r.Endpoint
	if to.Way.API != condense.APIGemini {
		return to
	}
	if to.Way.Path != assist {
		before := to.Way.Path[:max(strings.LastIndex(to.Way.Path, "/models/"), 0)]
		to.Way.Path = before + "/models/" + url.PathEscape(strings.TrimPrefix(r.Model, "models/"))
	}
	if !streamed {
		to.Way.Path += ":generateContent"
		return to
	}
	to.Way.Path += ":streamGenerateContent"
	to.Way.Query = strings.TrimPrefix(to.Way.Query+"&alt=sse", "&")
	return to
}

// geminiRequest limits the thinking of models that know levels of it: a summary needs little, and it reduces the room for the answer.
func geminiRequest(c Caller, r condense.Request, _ lacks) any {
	settings := object{}
	if r.MaxOutput > 0 {
		settings["maxOutputTokens"] = r.MaxOutput
	}
	if c.Temperature != nil {
		settings["temperature"] = *c.Temperature
	}
	level := c.Effort
	if strings.Contains(r.Model, "gemini-3") {
		level = cmp.Or(level, "low")
	}
	if level != "" {
		settings["thinkingConfig"] = object{"thinkingLevel": level}
	}
	out := object{"contents": []object{{"role": "user", "parts": []object{{"text": r.User}}}}, "generationConfig": settings}
	if r.System != "" {
		out["systemInstruction"] = object{"parts": []object{{"text": r.System}}}
	}
	if f := r.Function; f != nil {
		out["tools"] = []object{{"functionDeclarations": []object{described(object{"parametersJsonSchema": json.RawMessage(f.JSON)}, f)}}}
		out["toolConfig"] = object{"functionCallingConfig": object{"mode": "ANY", "allowedFunctionNames": []string{f.Name}}}
	}
	if f := r.Format; f != nil {
		settings["responseMimeType"], settings["responseJsonSchema"] = "application/json", json.RawMessage(f.JSON)
	}
	if r.Endpoint.Way.Path == assist {
		return object{"model": r.Model, "request": out}
	}
	return out
}
