package config

import (
	"slices"
	"strconv"
	"strings"
)

// FallbackModel returns what is assumed of a model that nobody knows: a window that the models of recent years have at
// least, and no price, so that nothing is decided or reported in money.
func FallbackModel() Model {
	return Model{ContextWindow: 128000, MaxOutput: 16384, Encoding: EncodingO200k}
}

// ModelFor returns what a request's model holds and costs, and whether that is known: from Config.Models, else from the
// built-in table, else FallbackModel and false. A vendor prefix ("openai/"), letter case, a date ("-2024-08-06",
// "-20250514", "-0613", "@20250514") and "-latest" do not matter, and a dot is as good as a dash ("claude-3.5-haiku").
func (c *Config) ModelFor(name string) (Model, bool) {
	model, known := c.ModelNamed(name)
	return model, known != ""
}

// ModelNamed is ModelFor with the name under which the model was found: that of Config.Models or of the built-in table,
// however the client spelled it, and empty for a model that nobody knows. There are only so many, whatever clients send.
func (c *Config) ModelNamed(name string) (model Model, known string) {
	if model, ok := c.Models[name]; ok {
		return model, name
	}
	if like, ok := c.configuredLike(name); ok {
		return c.Models[like], like
	}
	return builtinNamed(name)
}

// configuredLike finds the configured name that a request's model is a variant of; the first of several, sorted.
func (c *Config) configuredLike(name string) (like string, ok bool) {
	plain := plainModel(name)
	best := ""
	for known := range c.Models {
		same := plainModel(known)
		if (same == plain || same == undated(plain)) && (best == "" || known < best) {
			best = known
		}
	}
	_, ok = c.Models[best]
	return best, ok
}

func builtinModel(name string) (Model, bool) {
	model, known := builtinNamed(name)
	return model, known != ""
}

// builtinNamed gives a built-in model and the name that the table has it under.
func builtinNamed(name string) (Model, string) {
	plain := plainModel(name)
	for _, candidate := range [...]string{plain, undated(plain)} {
		if model := builtin(candidate); model.ContextWindow > 0 {
			return model, candidate
		}
	}
	return FallbackModel(), ""
}

// plainModel drops the vendor, as in "openrouter/openai/gpt-4.1", and folds case and dots.
func plainModel(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	return strings.ReplaceAll(strings.ToLower(name), ".", "-")
}

// undated drops the ending that names a version of a model.
func undated(name string) string {
	if base, ok := strings.CutSuffix(name, "-latest"); ok {
		return base
	}
	if len(name) > 11 && isDate(name[len(name)-11:]) {
		return name[:len(name)-11]
	}
	at := strings.LastIndexAny(name, "-@")
	if at < 0 || !slices.Contains([]int{3, 4, 8}, len(name)-at-1) || !digits(name[at+1:]) {
		return name
	}
	return name[:at]
}

// isDate recognises -2024-08-06.
func isDate(s string) bool {
	return s[0] == '-' && digits(s[1:5]) && s[5] == '-' && digits(s[6:8]) && s[8] == '-' && digits(s[9:])
}

func digits(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}
