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

// Webhook is a Sink, and its own Conn, that posts JSON to an HTTP service, signed according to standardwebhooks.com.
type Webhook struct {
	Transport http.RoundTripper
	URL       string
	Secret    string // empty: unsigned
}

var _ Sink = Webhook{}

// Open implements Sink.
func (w Webhook) Open(context.Context) (Conn, error) { return w, nil }

// noRedirect keeps a client from following redirects: findings go only to the configured server.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Send accepts any 2xx status.
func (w Webhook) Send(ctx context.Context, m *Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode findings: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("memory.webhook.url is not a URL") // err contains it
	}
	req.Header.Set("Content-Type", "application/json")
	sign(req.Header, w.Secret, m.ID, time.Now(), body)
	client := http.Client{Transport: w.Transport, CheckRedirect: noRedirect}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("call memory.webhook: %w", withoutURL(err))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be reused
	return statusError(resp.StatusCode)
}

// Close implements Conn.
func (w Webhook) Close() {}

// statusError returns the error for an HTTP status, nil for 2xx.
func statusError(status int) error {
	switch {
	case status/100 == 2:
		return nil
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status/100 != 4:
		return fmt.Errorf("the sink returned status %d", status)
	}
	return &RefusedError{fmt.Sprintf("status %d", status)}
}

// sign sets the headers by which a receiver authenticates the sender and recognises old and repeated messages.
func sign(h http.Header, secret, id string, now time.Time, body []byte) {
	at := strconv.FormatInt(now.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", at)
	if secret == "" {
		return
	}
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		key, _ = base64.StdEncoding.DecodeString(encoded) // validated with the configuration
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// withoutURL removes the URL, which may contain a secret, from an error of a call.
func withoutURL(err error) error {
	if e, is := errors.AsType[*url.Error](err); is {
		return e.Err
	}
	return err
}
