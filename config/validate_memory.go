package config

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// memory checks where findings go.
func (v *validator) memory(key string, m *Memory) {
	var sinks []string
	for name, set := range map[string]bool{"file": m.File != "", "webhook": m.Webhook.URL != "", "mcp": m.MCP.URL != "" || len(m.MCP.Command) > 0} {
		if set {
			sinks = append(sinks, name)
		}
	}
	slices.Sort(sinks)
	v.when(len(sinks) > 1, key, "has %s: keep one of them", strings.Join(sinks, " and "))
	v.when(len(sinks) == 0 && (m.MaxPending != 0 || m.MaxAge != 0), key, "goes nowhere: set file, webhook.url, mcp.url or mcp.command, or remove it")
	v.when(m.MaxPending < 0, key+".max_pending", "is negative: write a number, or leave it out")
	v.notNegative(key+".max_age", m.MaxAge)
	v.webhook(key+".webhook", m.Webhook)
	v.mcp(key+".mcp", &m.MCP)
}

func (v *validator) webhook(key string, w Webhook) {
	v.when(w.Secret != "" && w.URL == "", key+".url", "is missing while secret is set: add it, or remove that")
	if w.URL != "" {
		v.baseURL(key+".url", w.URL.Reveal())
	}
	if encoded, is := strings.CutPrefix(w.Secret.Reveal(), "whsec_"); is {
		_, err := base64.StdEncoding.DecodeString(encoded)
		v.when(err != nil, key+".secret", "begins with whsec_ and is not base64 behind that: copy all of it")
	}
}

func (v *validator) mcp(key string, m *MCP) {
	v.headerValue(key+".api_key", m.APIKey)
	v.when(slices.Contains(m.Command, ""), key+".command", "holds an empty text: write it as [npx, -y, \"@modelcontextprotocol/server-memory\"]")
	v.when(m.APIKey != "" && m.URL == "", key+".api_key", "goes nowhere without url: add that, or remove it")
	v.when(len(m.Env) > 0 && len(m.Command) == 0, key+".env", "is for a command: add that, or remove it")
	switch {
	case m.URL != "" && len(m.Command) > 0:
		v.add(key+".command", "is there, and so is url: keep one of them")
	case m.URL != "":
		v.baseURL(key+".url", m.URL)
	case len(m.Command) == 0:
		v.when(m.Tool != "" || m.Arguments != "", key+".url", "is missing, and so is command: name the server to call, or the program")
	}
	if m.Arguments != "" {
		var object map[string]any
		v.when(json.Unmarshal([]byte(m.Arguments), &object) != nil, key+".arguments", "is no object of JSON: write it as '{\"text\": \"{findings}\"}'")
		v.when(m.Tool == "", key+".tool", "is missing while arguments is set: name the tool that takes them")
	}
}
