package chat

// Known is how many messages of a body a dialect remembers, and Held how many bytes it holds for that.
func Known(d *Dialect, body []byte) int {
	_, n := d.memory.find(body)
	return n
}

func Held(d *Dialect) (bodies, bytes int) {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	return len(d.memory.begun), d.memory.bytes
}
