package engine

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// SealedMark is the prefix of sealed records.
const SealedMark = "dewpoint.1."

// Errors of Unseal. It also returns those of the store.
var (
	ErrForeign = errors.New("the record was altered, or was sealed for another tenant or installation")
	ErrOldKey  = errors.New("the record was sealed with a secret that is no longer in use")
)

// secretTimeout is how long to wait for the store's secret, which is read once after the start. Without it, the request fails.
const secretTimeout = 10 * time.Second

// Record returns the text that replaces the turn's whole history: the record that a model wrote, and the user's own words. If no model
// did, it has excerpts, and fails if there is nothing to quote. If the request was not recognised, it holds only the model's record.
func (f *Form) Record(ctx context.Context, written string) (string, error) {
	if !f.turn.Recognised() {
		return record.Summary{Record: written}.String(), nil
	}
	f, err := f.withKept(ctx)
	if err != nil && written == "" {
		return "", err
	}
	in := f.resolved(ctx).input(condense.Need{})
	in.Thread.Recall = false // another history begins with the record, with other numbers
	return condense.Replacement(context.WithoutCancel(ctx), in, written)
}

// Seal encrypts a record for a client to carry, with XAES-256-GCM, bound to the tenant. It is not bound to the client's credential, which
// may be a short-lived token. Every replica with the same secret can unseal it.
func (e *Engine) Seal(ctx context.Context, tenant, text string) (string, error) {
	keys, err := e.recordKeys(ctx)
	if err != nil {
		return "", err
	}
	return SealedMark + base64.RawURLEncoding.EncodeToString(keys.Seal(nil, []byte(text), []byte(tenant))), nil
}

// Unseal returns a record that was sealed for the tenant. The error is ErrForeign, ErrOldKey or the store's.
func (e *Engine) Unseal(ctx context.Context, tenant, sealed string) (string, error) {
	text, marked := strings.CutPrefix(sealed, SealedMark)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || !marked {
		return "", ErrForeign
	}
	keys, err := e.recordKeys(ctx)
	if err != nil {
		return "", err
	}
	plain, err := keys.Open(raw, []byte(tenant))
	if _, unknown := errors.AsType[*seal.KeyError](err); unknown {
		return "", ErrOldKey
	}
	if err != nil {
		return "", ErrForeign
	}
	return string(plain), nil
}

// recordKeys returns the key that records are sealed with.
func (e *Engine) recordKeys(ctx context.Context) (*seal.Keys, error) {
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	_, _, secret, err := e.o.Sessions.Registry(ctx)
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	key, name := secret.RecordKey()
	id := hex.EncodeToString(name)
	keys, err := seal.New(id, map[string][]byte{id: key})
	if err != nil {
		return nil, fmt.Errorf("seal record: %w", err)
	}
	return keys, nil
}
