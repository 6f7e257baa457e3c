package h1

import "time"

// SetCrossing sets how late the end of a kept connection may come for its request to be sent again.
func (t *Transport) SetCrossing(d time.Duration) { t.crossing = d }
