package chat

// Known returns how many messages at the beginning of a body d remembers.
func Known(d *Dialect, body []byte) int { return d.bodies.Known(body) }

// Remembered returns how many bodies d remembers, and their size in bytes.
func Remembered(d *Dialect) (bodies, bytes int) { return d.bodies.Remembered() }
