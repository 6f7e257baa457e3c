package chat

// Known is how many messages of a body a dialect remembers, and Held how many bytes it holds for that.
func Known(d *Dialect, body []byte) int { return d.bodies.Known(body) }

func Held(d *Dialect) (bodies, bytes int) { return d.bodies.Held() }
