package chat

// Known returns how many messages at the beginning of a body d remembers.
func Known(d *Dialect, body []byte) int { return d.bodies.Known(body) }

// Held returns how many bodies d remembers, and the bytes that they take.
func Held(d *Dialect) (bodies, bytes int) { return d.bodies.Held() }
