package findings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// MCP is a Sink that calls a tool of an MCP server, over streamable HTTP, once for each message.
type MCP struct {
	URL       string
	Transport http.RoundTripper
	Key       string // sent to URL as a bearer token; may be empty
	Tool      string
	Arguments string // of the tool: a JSON object with placeholders, see fill
}

var _ Sink = MCP{}

// DefaultTool and DefaultArguments suit the reference server @modelcontextprotocol/server-memory. It identifies an entity by its name, so a
// repeated message has no effect.
const (
	DefaultTool      = "create_entities"
	DefaultArguments = `{"entities": [{"name": "{id}", "entityType": "findings", "observations": ["{findings}"]}]}`
)

// Open implements Sink.
func (m MCP) Open(ctx context.Context) (Conn, error) {
	through := &mcp.StreamableClientTransport{
		Endpoint: m.URL,
		HTTPClient: &http.Client{
			Transport: &bearer{RoundTripper: m.Transport, key: m.Key}, CheckRedirect: noRedirect, Timeout: openTimeout,
		},
		DisableStandaloneSSE: true, MaxRetries: -1,
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "dewpoint", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	client.AddReceivingMiddleware(onlyPings)
	var to *mcp.ClientSession
	err := session.Recover(func() (err error) {
		to, err = client.Connect(ctx, through, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect to memory.mcp: %w", withoutURL(err))
	}
	return mcpConn{m, to}, nil
}

// onlyPings refuses all requests and notifications of a server except pings, because the library panics on some of them.
func onlyPings(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != "ping" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not supported"}
		}
		return next(ctx, method, req)
	}
}

type mcpConn struct {
	MCP
	session *mcp.ClientSession
}

// codeRejected is the library's code for a call that did not reach the server, and for an answer that says that it is overloaded.
const codeRejected = -32005

// Send calls the tool. It returns only the code of a server's error, since the text may quote the message.
func (c mcpConn) Send(ctx context.Context, m *Message) error {
	var arguments map[string]any
	_ = json.Unmarshal([]byte(c.Arguments), &arguments) // validated with the configuration
	var result *mcp.CallToolResult
	err := session.Recover(func() (err error) { // the library panics on some answers
		result, err = c.session.CallTool(ctx, &mcp.CallToolParams{Name: c.Tool, Arguments: fill(arguments, m)})
		return err
	})
	wire, refused := errors.AsType[*jsonrpc.Error](err)
	switch {
	case err == nil && (result.IsError || result.NeedsInput()):
		return &RefusedError{"the tool " + c.Tool + " failed"}
	case err == nil:
		return nil
	case refused && wire.Code != codeRejected:
		return &RefusedError{fmt.Sprintf("the tool %s failed with JSON-RPC error %d", c.Tool, wire.Code)}
	case ctx.Err() != nil:
		return fmt.Errorf("call memory.mcp: %w", ctx.Err())
	}
	return errors.New("call memory.mcp: the connection failed")
}

func (c mcpConn) Close() { _ = session.Recover(c.session.Close) }

// Bounds of a connection over HTTP. The library reads an answer as a whole, and answers all requests in it at once.
const (
	maxMCPAnswer   = 4 << 20 // bytes of an answer
	maxMCPRequests = 8       // at a time
)

// bearer adds a key to requests and enforces the bounds above.
type bearer struct {
	http.RoundTripper
	key  string
	open atomic.Int32 // requests whose answers have not been read
}

func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.open.Add(1) > maxMCPRequests {
		b.open.Add(-1)
		return nil, errors.New("too many requests at a time")
	}
	if b.key != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+b.key)
	}
	resp, err := b.RoundTripper.RoundTrip(req)
	if err != nil {
		b.open.Add(-1)
		return nil, err // pass the transport's error on
	}
	body := resp.Body
	resp.Body = mcpAnswer{io.LimitReader(body, maxMCPAnswer), sync.OnceValue(func() error {
		defer b.open.Add(-1)
		return body.Close() // the body's own
	})}
	return resp, nil
}

// mcpAnswer is the body of an answer.
type mcpAnswer struct {
	io.Reader
	close func() error
}

func (a mcpAnswer) Close() error { return a.close() }

// fill replaces the placeholders {id}, {tenant}, {session}, {thread}, {time} and {findings} in arguments. A list item "{findings}" becomes
// one item for each finding; elsewhere {findings} is replaced by one line for each.
func fill(arguments any, m *Message) any {
	var findings []any
	text := make([]string, len(m.Findings))
	for i, f := range m.Findings {
		text[i] = fmt.Sprintf("%s (%s): %s", f.Kind, f.Section, f.Text)
		findings = append(findings, text[i])
	}
	placeholders := strings.NewReplacer("{id}", m.ID, "{tenant}", m.Tenant, "{session}", string(m.Session), "{thread}", string(m.Thread),
		"{time}", m.Time.Format(time.RFC3339), "{findings}", strings.Join(text, "\n"))
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return placeholders.Replace(v)
		case []any:
			list := []any{}
			for _, item := range v {
				if item == "{findings}" {
					list = append(list, findings...)
				} else {
					list = append(list, walk(item))
				}
			}
			return list
		case map[string]any:
			object := map[string]any{}
			for name, member := range v {
				object[name] = walk(member)
			}
			return object
		}
		return v
	}
	return walk(arguments)
}
