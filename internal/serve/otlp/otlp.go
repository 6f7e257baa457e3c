// Package otlp sends spans to a collector by OTLP over HTTP, as protobuf, configured by OpenTelemetry's standard environment
// variables. It replaces OpenTelemetry's own HTTP exporter, which pulls in gRPC's generated services and made the binary 63%
// larger. The encoding and the rest of the SDK are OpenTelemetry's.
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
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Client sends spans. It reports errors only to the function that it was created with, because an unreachable collector
// must not affect requests. It is safe for concurrent use.
type Client struct {
	settings Settings
	http     *http.Client
	done     func(error)
	backoff  time.Duration // upper bound of the first retry's delay
}

var _ otlptrace.Client = (*Client)(nil)

// NewClient returns a client that calls done for each batch: with nil if the collector accepted it, or with the error after
// which the client gave up.
func NewClient(s Settings, done func(error)) *Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.TLS, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
		ForceAttemptHTTP2: true,
	}
	return &Client{settings: s, http: &http.Client{Transport: transport, CheckRedirect: noRedirect}, done: done, backoff: firstBackoff}
}

// noRedirect refuses redirects, because the headers are only meant for the configured collector.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (c *Client) Start(context.Context) error { return nil }

func (c *Client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. It always returns nil.
func (c *Client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	c.done(c.upload(ctx, spans))
	return nil
}

func (c *Client) upload(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := c.encode(spans)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.settings.Timeout)
	defer cancel()
	for backoff := c.backoff; ; backoff *= 2 {
		err := c.post(ctx, body)
		retry, ok := errors.AsType[*retryable](err)
		if !ok {
			return err
		}
		delay := max(retry.after, backoff/2+rand.N(backoff/2)) //nolint:gosec // jitter is no secret
		if end, ok := ctx.Deadline(); ok && time.Until(end) <= delay {
			return err
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return err
		}
	}
}

// firstBackoff is the longest delay before the first retry. It doubles with each further retry.
const firstBackoff = time.Second

// encode returns an ExportTraceServiceRequest, whose wire format is that of TracesData.
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
	_, _ = w.Write(raw) // writing to a buffer cannot fail
	_ = w.Close()
	return b.Bytes(), nil
}

// retryable is a temporary failure.
type retryable struct {
	error
	after time.Duration // minimum delay requested by the collector
}

// maxResponse bounds how much of a response is read so that its connection can be reused, in bytes.
const maxResponse = 64 << 10

// post makes one attempt. Its errors contain neither our headers nor the collector's response.
func (c *Client) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.settings.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("send spans: the endpoint is not a valid URL")
	}
	maps.Copy(req.Header, c.settings.Headers)
	req.Header.Set("Content-Type", "application/x-protobuf")
	if c.settings.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := c.http.Do(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("send spans: the collector did not answer in time")
	case err != nil:
		return &retryable{error: errors.New("send spans: the collector cannot be reached")}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxResponse))
	if resp.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("send spans: the collector answered with status %d", resp.StatusCode)
	switch resp.StatusCode { // only these four are retried (OTLP, "Retryable Response Codes")
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return &retryable{error: err, after: time.Duration(max(seconds, 0)) * time.Second}
	}
	return err
}
