package admin

import (
	"errors"
	"net/http"

	"github.com/dewpoint-proxy/dewpoint/engine"
)

type unsealRequest struct {
	Tenant string `json:"tenant"`
	Sealed string `json:"sealed"` // the content of a compaction that the proxy gave to a client
}

// unseal decrypts the record in a compaction that a client carries.
func (a *api) unseal(r *http.Request, _ *query) (any, error) {
	var asked unsealRequest
	if err := a.readBody(r, &asked); err != nil {
		return nil, err
	}
	if asked.Sealed == "" {
		return nil, badParam("body", `Send {"tenant": ..., "sealed": "dewpoint.1..."}, where sealed is the content of a compaction that this proxy made.`)
	}
	tenant, err := a.resolveTenant(asked.Tenant)
	if err != nil {
		return nil, err
	}
	text, err := a.o.Forwarder.Unseal(r.Context(), tenant, asked.Sealed)
	if errors.Is(err, engine.ErrForeign) || errors.Is(err, engine.ErrOldKey) {
		return nil, badParam("sealed", "It cannot be opened: %v.", err)
	}
	return map[string]string{"record": text}, err
}
