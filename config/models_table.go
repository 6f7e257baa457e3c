package config

// builtin returns what is published of a well-known model, by its name without vendor, date and dots; the zero Model for
// any other. Limits and list prices are their makers'. A model that anybody may host, or whose price keeps moving, has
// limits but no price. Vocabularies that are not public count with the nearest embedded one.
func builtin(name string) Model {
	for _, maker := range []func(string) Model{openAIModel, anthropicModel, geminiModel, openModel} {
		if model := maker(name); model.ContextWindow > 0 {
			return model
		}
	}
	return Model{}
}

// openAIModel knows OpenAI's models; OpenAI charges nothing extra for writing its cache.
func openAIModel(name string) Model {
	switch name {
	case "gpt-4o":
		return Model{128000, 16384, EncodingO200k, Price{2.5, 1.25, 2.5, 10}}
	case "gpt-4o-2024-05-13":
		return Model{128000, 4096, EncodingO200k, Price{5, 5, 5, 15}}
	case "chatgpt-4o":
		return Model{128000, 16384, EncodingO200k, Price{5, 5, 5, 15}}
	case "gpt-4o-mini":
		return Model{128000, 16384, EncodingO200k, Price{0.15, 0.075, 0.15, 0.6}}
	case "gpt-4-1":
		return Model{1047576, 32768, EncodingO200k, Price{2, 0.5, 2, 8}}
	case "gpt-4-1-mini":
		return Model{1047576, 32768, EncodingO200k, Price{0.4, 0.1, 0.4, 1.6}}
	case "gpt-4-1-nano":
		return Model{1047576, 32768, EncodingO200k, Price{0.1, 0.025, 0.1, 0.4}}
	case "o1":
		return Model{200000, 100000, EncodingO200k, Price{15, 7.5, 15, 60}}
	case "o1-mini":
		return Model{128000, 65536, EncodingO200k, Price{1.1, 0.55, 1.1, 4.4}}
	case "o3":
		return Model{200000, 100000, EncodingO200k, Price{2, 0.5, 2, 8}}
	case "o3-mini":
		return Model{200000, 100000, EncodingO200k, Price{1.1, 0.55, 1.1, 4.4}}
	case "o4-mini":
		return Model{200000, 100000, EncodingO200k, Price{1.1, 0.275, 1.1, 4.4}}
	case "gpt-5", "gpt-5-codex", "gpt-5-1", "gpt-5-1-codex", "gpt-5-1-codex-max":
		return Model{400000, 128000, EncodingO200k, Price{1.25, 0.125, 1.25, 10}}
	case "gpt-5-chat", "gpt-5-1-chat":
		return Model{128000, 16384, EncodingO200k, Price{1.25, 0.125, 1.25, 10}}
	case "gpt-5-mini", "gpt-5-1-codex-mini":
		return Model{400000, 128000, EncodingO200k, Price{0.25, 0.025, 0.25, 2}}
	case "gpt-5-nano":
		return Model{400000, 128000, EncodingO200k, Price{0.05, 0.005, 0.05, 0.4}}
	case "gpt-4-turbo":
		return Model{128000, 4096, EncodingCL100k, Price{10, 10, 10, 30}}
	case "gpt-4":
		return Model{8192, 8192, EncodingCL100k, Price{30, 30, 30, 60}}
	case "gpt-4-32k":
		return Model{32768, 32768, EncodingCL100k, Price{60, 60, 60, 120}}
	case "gpt-3-5-turbo":
		return Model{16385, 4096, EncodingCL100k, Price{0.5, 0.5, 0.5, 1.5}}
	}
	return Model{}
}

// anthropicModel knows Anthropic's models; cached input costs a tenth, and writing the five minute cache a quarter more.
func anthropicModel(name string) Model {
	switch name {
	case "claude-3-haiku":
		return Model{200000, 4096, EncodingO200k, Price{0.25, 0.03, 0.3, 1.25}}
	case "claude-3-opus":
		return Model{200000, 4096, EncodingO200k, Price{15, 1.5, 18.75, 75}}
	case "claude-3-5-haiku":
		return Model{200000, 8192, EncodingO200k, Price{0.8, 0.08, 1, 4}}
	case "claude-3-5-sonnet":
		return Model{200000, 8192, EncodingO200k, Price{3, 0.3, 3.75, 15}}
	case "claude-3-7-sonnet", "claude-sonnet-4", "claude-sonnet-4-0", "claude-sonnet-4-5":
		return Model{200000, 64000, EncodingO200k, Price{3, 0.3, 3.75, 15}}
	case "claude-opus-4", "claude-opus-4-0", "claude-opus-4-1":
		return Model{200000, 32000, EncodingO200k, Price{15, 1.5, 18.75, 75}}
	case "claude-opus-4-5":
		return Model{200000, 64000, EncodingO200k, Price{5, 0.5, 6.25, 25}}
	case "claude-haiku-4-5":
		return Model{200000, 64000, EncodingO200k, Price{1, 0.1, 1.25, 5}}
	}
	return Model{}
}

// geminiModel knows Google's models; the prices are those of prompts up to 200,000 tokens, or 128,000 for the 1.5 models.
func geminiModel(name string) Model {
	switch name {
	case "gemini-1-5-pro":
		return Model{2097152, 8192, EncodingO200k, Price{1.25, 0.3125, 1.25, 5}}
	case "gemini-1-5-flash":
		return Model{1048576, 8192, EncodingO200k, Price{0.075, 0.01875, 0.075, 0.3}}
	case "gemini-2-0-flash":
		return Model{1048576, 8192, EncodingO200k, Price{0.1, 0.025, 0.1, 0.4}}
	case "gemini-2-5-pro":
		return Model{1048576, 65536, EncodingO200k, Price{1.25, 0.125, 1.25, 10}}
	case "gemini-2-5-flash":
		return Model{1048576, 65536, EncodingO200k, Price{0.3, 0.03, 0.3, 2.5}}
	case "gemini-2-5-flash-lite":
		return Model{1048576, 65536, EncodingO200k, Price{0.1, 0.01, 0.1, 0.4}}
	}
	return Model{}
}

// openModel knows models with open weights; their prices are their hosts'.
func openModel(name string) Model {
	switch name {
	case "deepseek-chat", "deepseek-v3", "deepseek-v3-1":
		return Model{128000, 8192, EncodingO200k, Price{}}
	case "deepseek-reasoner", "deepseek-r1":
		return Model{128000, 32768, EncodingO200k, Price{}}
	case "qwen2-5-72b-instruct", "qwen2-5-coder-32b-instruct":
		return Model{131072, 8192, EncodingCL100k, Price{}}
	case "qwen3-coder-480b-a35b-instruct", "qwen3-coder-30b-a3b-instruct":
		return Model{262144, 65536, EncodingCL100k, Price{}}
	case "llama-3-1-8b-instruct", "llama-3-1-70b-instruct", "llama-3-1-405b-instruct", "llama-3-3-70b-instruct":
		return Model{131072, 4096, EncodingCL100k, Price{}}
	case "llama-3-3-70b-versatile", "llama-3-3-70b-instruct-turbo":
		return Model{131072, 32768, EncodingCL100k, Price{}}
	case "mistral-large-latest", "mistral-small-latest", "mistral-medium-latest":
		return Model{128000, 8192, EncodingO200k, Price{}}
	case "gpt-oss-20b", "gpt-oss-120b":
		return Model{131072, 32768, EncodingO200k, Price{}}
	}
	return Model{}
}
