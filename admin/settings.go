package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
)

func (a *api) tenants(*http.Request, *query) (any, error) {
	return map[string][]Tenant{"tenants": a.o.Settings.Tenants()}, nil
}

func (a *api) config(*http.Request, *query) (any, error) {
	text, err := a.o.Settings.Effective()
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return json.RawMessage(text), nil
}
