package split

import (
	"bytes"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// management is the member of a body that asks upstream to edit or compact the history by itself.
const management = "context_management"

// Manages takes the member that asks upstream to manage the history out of a body. limit reads it: above how many tokens of input the
// history is to be compacted, 0 if at no number. Without such a member the zero value is given.
func Manages(body []byte, limit func(rawjson.Value) int) (m dialect.Managed) {
	if !bytes.Contains(body, []byte(management)) || rawjson.Valid(body, 0) != nil {
		return m
	}
	found := false
	rest := append(make([]byte, 0, len(body)), '{')
	for key, v := range rawjson.Members(body) {
		switch string(key.Raw) {
		case management:
			found, m.Limit = true, limit(v)
			continue
		case "model":
			m.Model = Cut(v.Text())
		}
		rest = AppendMember(rest, key, v.Raw)
	}
	if !found {
		return dialect.Managed{}
	}
	m.Rest = append(rest, '}')
	return m
}
