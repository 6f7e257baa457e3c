package responses

// Known returns how many messages at the beginning of a body are remembered.
func (d *Dialect) Known(body []byte) int { return d.bodies.Known(body) }
