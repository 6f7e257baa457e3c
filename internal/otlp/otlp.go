// Package otlp sends spans to a collector by OTLP over HTTP, as protobuf, configured by OpenTelemetry's standard environment
// variables. The exporter that OpenTelemetry itself has for this brings gRPC's generated services with it, which made the
// binary 63% larger; the encoding and all else of the SDK is OpenTelemetry's own.
//
// Specification: https://opentelemetry.io/docs/specs/otlp/#otlphttp and
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/.
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Client sends spans. What goes wrong is told to the function that it was made with, and nowhere else: a collector
// that is away must not concern requests. It may be used concurrently.
type Client struct {
	settings Settings
	http     *http.Client
	failed   func(error)
	wait     time.Duration // before the first retry, at most
}

var _ otlptrace.Client = (*Client)(nil)

// NewClient makes a client. Failed is called for each batch that was given up, and with nil for each that was taken.
func NewClient(s Settings, failed func(error)) *Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.TLS, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
		ForceAttemptHTTP2: true,
	}
	return &Client{settings: s, http: &http.Client{Transport: transport, CheckRedirect: stay}, failed: failed, wait: firstWait}
}

// stay follows no redirect: the headers are for the collector that was configured.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (c *Client) Start(context.Context) error { return nil }

func (c *Client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. It always gives nil.
func (c *Client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	c.failed(c.upload(ctx, spans))
	return nil
}

func (c *Client) upload(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := c.encode(spans)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.settings.Timeout)
	defer cancel()
	for wait := c.wait; ; wait *= 2 {
		err := c.post(ctx, body)
		var again *retryable
		if err == nil || !errors.As(err, &again) {
			return err
		}
		if !sleep(ctx, max(again.after, wait/2+rand.N(wait/2))) { //nolint:gosec // jitter is no secret
			return err
		}
	}
}

// firstWait is how long the first retry waits at most; each further one waits twice as long.
const firstWait = time.Second

// sleep waits, and reports whether there was time to.
func sleep(ctx context.Context, wait time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// encode writes an ExportTraceServiceRequest: TracesData is the same on the wire.
func (c *Client) encode(spans []*tracepb.ResourceSpans) ([]byte, error) {
	raw, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return nil, fmt.Errorf("encode spans: %w", err)
	}
	if !c.settings.Gzip {
		return raw, nil
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(raw) // a buffer takes everything
	_ = w.Close()
	return b.Bytes(), nil
}

// retryable is a failure that may pass.
type retryable struct {
	err   error
	after time.Duration // that the collector asked for
}

func (r *retryable) Error() string { return r.err.Error() }
func (r *retryable) Unwrap() error { return r.err }

// answerRead bounds what is read of a collector's answer so that its connection can be used again, in bytes.
const answerRead = 64 << 10

// post makes one attempt. Its errors hold no header of ours, and nothing that the collector says.
func (c *Client) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.settings.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("send spans: the endpoint is not a URL")
	}
	for name, values := range c.settings.Headers {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	if c.settings.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return &retryable{err: errors.New("send spans: " + cause(ctx))}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, answerRead))
	return refusal(resp)
}

func cause(ctx context.Context) string {
	if ctx.Err() != nil {
		return "the collector did not answer in time"
	}
	return "the collector cannot be reached"
}

// refusal is nil for a success. Only four statuses are worth another try (OTLP, "Retryable Response Codes").
func refusal(resp *http.Response) error {
	if resp.StatusCode/100 == 2 {
		return nil
	}
	err := fmt.Errorf("send spans: the collector answered with status %d", resp.StatusCode)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return &retryable{err: err, after: time.Duration(max(seconds, 0)) * time.Second}
	}
	return err
}
