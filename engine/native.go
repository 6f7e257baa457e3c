package engine

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// SealedMark begins what Seal gives.
const SealedMark = "dewpoint.1."

// Why a sealed record is not opened. Other errors are those of the store.
var (
	ErrForeign = errors.New("the record was not made here for this tenant, or it was changed")
	ErrOldKey  = errors.New("the record was made under a secret that is not in use any more")
)

// recordPatience is how long the store's secret is waited for, once after the start: without it the request fails.
const recordPatience = 10 * time.Second

// How many tokens of the user's own words stand next to a record that a client carries, at most.
const (
	wordsRoom  = 2000
	wordsShare = 4 // of the history, one in that many, if that is more
)

// Record is the text that stands for the turn's whole history: what a model wrote of it, and the user's own words. Of no turn, whose
// history is not known, it is what the model wrote.
func (t *Turn) Record(written string) string {
	if t == nil {
		return record.Summary{Record: record.Unwrap(written)}.String()
	}
	var words record.Words
	for i := range t.history.Len() {
		m := t.history.Message(i + 1)
		if i+1 == t.history.Len() || m.Kind != session.User { // the last one asks for the record
			continue
		}
		if c, err := t.in.Dialect.Read(m.Raw); err == nil {
			words.Forget(m.Kind, c)
		}
	}
	room := max(wordsRoom, t.size().Tokens/wordsShare)
	return record.Summary{Record: record.Unwrap(written), Words: words.Text(room, wordsRoom, t.counter.Text)}.String()
}

// Seal encrypts a record for a client of the tenant's to carry: XAES-256-GCM, bound to the tenant. It is not bound to the client's
// credential, which may be a token that lasts for an hour. Every replica with the same secret opens it.
func (e *Engine) Seal(ctx context.Context, tenant, text string) (string, error) {
	keys, err := e.recordKeys(ctx)
	if err != nil {
		return "", err
	}
	return SealedMark + base64.RawURLEncoding.EncodeToString(keys.Seal(nil, []byte(text), []byte(tenant))), nil
}

// Unseal gives what was sealed for the tenant. The error is ErrForeign, ErrOldKey, or the store's.
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

// recordKeys is the key for records.
func (e *Engine) recordKeys(ctx context.Context) (*seal.Keys, error) {
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
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
