package findings

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Webhook is a Sink that posts JSON to an HTTP service, signed as standardwebhooks.com says.
type Webhook struct {
	Transport http.RoundTripper
	URL       string
	Secret    string // empty: unsigned
}

var _ Sink = Webhook{}

// secretPrefix is what secrets begin with that are written in base64.
const secretPrefix = "whsec_"

// Key is what a secret signs with; false: it cannot be read.
func Key(secret string) ([]byte, bool) {
	encoded, is := strings.CutPrefix(secret, secretPrefix)
	if !is {
		return []byte(secret), true
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	return key, err == nil
}

// Open implements Sink.
func (w Webhook) Open(context.Context) (Line, error) {
	return posts{w, &http.Client{Transport: w.Transport, CheckRedirect: stay}}, nil
}

// stay follows no redirection: what is told goes to the configured server and nowhere else.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

type posts struct {
	Webhook
	client *http.Client
}

// Tell takes any status of 2xx for an answer.
func (p posts) Tell(ctx context.Context, t *Told) error {
	body, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("memory.webhook.url is not a URL") // err holds it
	}
	req.Header.Set("Content-Type", "application/json")
	sign(req.Header, p.Secret, t.ID, time.Now(), body)
	resp, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("call memory.webhook: %w", withoutURL(err))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	return verdict(resp.StatusCode)
}

func (p posts) Close() {}

// verdict is what a status says of what was told.
func verdict(status int) error {
	switch {
	case status/100 == 2:
		return nil
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status/100 != 4:
		return fmt.Errorf("the sink answers with status %d", status)
	}
	return &RefusedError{fmt.Sprintf("status %d", status)}
}

// sign sets the headers by which a receiver knows the sender, an old message and one that it has had.
func sign(h http.Header, secret, id string, now time.Time, body []byte) {
	at := strconv.FormatInt(now.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", at)
	if secret == "" {
		return
	}
	key, _ := Key(secret) // it was read when it was configured
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// withoutURL is an error of a call without its URL, which may hold a secret.
func withoutURL(err error) error {
	if e, is := errors.AsType[*url.Error](err); is {
		return e.Err
	}
	return err
}
