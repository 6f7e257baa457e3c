package config

import "github.com/dewpoint-proxy/dewpoint/internal/model"

// ModelFor returns what a request's model holds and costs, and whether that is known: from Config.Models, else from the
// built-in table, else model.Fallback and false.
func (c *Config) ModelFor(name string) (model.Info, bool) {
	info, known := c.ModelNamed(name)
	return info, known != ""
}

// ModelNamed is ModelFor with the name under which the model was found, see model.Table.
func (c *Config) ModelNamed(name string) (info model.Info, known string) {
	return model.Table{Configured: c.Models}.Lookup(name)
}
