package app

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// compared returns a tenant's holdout. Its variant is the same on every replica with the same settings, and after a restart.
func compared(t config.Tenant) session.Holdout {
	h := session.Holdout{Share: t.Holdout.Share}
	if arm := t.Holdout.Condenser; arm != nil {
		sum := sha256.Sum256(config.EncodeCondenser(*arm))
		h.Variant = hex.EncodeToString(sum[:8])
	}
	return h
}

// armOf returns the type of the condenser of held-out sessions, empty if they are not condensed.
func armOf(t config.Tenant) string {
	if t.Holdout.Condenser == nil {
		return ""
	}
	return t.Holdout.Condenser.Type
}

// strategy builds the condenser of an arm with what follows from its settings. key is its key in the configuration.
func (b builder) strategy(key string, chosen config.Condenser) (*engine.Strategy, error) {
	condenser, err := catalogue.Build(key, chosen, b)
	if err != nil {
		return nil, err
	}
	deadline, never := chosen.Waits()
	return &engine.Strategy{
		Condenser: condenser, Deadline: deadline, Never: never, Ahead: never || chosen.Prepares(), Hidden: hidden(chosen),
		CondenseTimeout: condenseTimeout(b.config, chosen),
	}, nil
}
