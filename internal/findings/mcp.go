package findings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MCP is a Sink that calls a tool of an MCP server, for each condensation once. The server is a program, which is started for each
// round, or is reached by streamable HTTP.
type MCP struct {
	Command []string // path or name, and arguments; empty: URL
	Env     []string // of the program, NAME=value
	URL     string

	Transport http.RoundTripper
	Key       string // sent to URL as a bearer token; empty: none is
	Tool      string
	Arguments any // of the tool, as JSON is decoded, with placeholders: see fill
}

var _ Sink = MCP{}

// DefaultTool and DefaultArguments are for the reference server of the protocol, @modelcontextprotocol/server-memory. It knows an entity
// by its name, so that what it is told twice is there once.
const (
	DefaultTool      = "create_entities"
	DefaultArguments = `{"entities": [{"name": "{id}", "entityType": "findings", "observations": ["{findings}"]}]}`
)

// endTime is how long a program may take to end when its input has.
const endTime = 2 * time.Second

// Open implements Sink.
func (m MCP) Open(ctx context.Context) (Line, error) {
	own, end := context.WithCancel(context.WithoutCancel(ctx)) // the program outlives the call that starts it
	var to mcp.Transport
	if len(m.Command) > 0 {
		to = m.program(own)
	} else {
		to = &mcp.StreamableClientTransport{
			Endpoint: m.URL, HTTPClient: &http.Client{Transport: bearer{m.Transport, m.Key}, CheckRedirect: stay},
			DisableStandaloneSSE: true, MaxRetries: -1,
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "dewpoint", Version: "1"}, nil)
	session, err := client.Connect(ctx, to, nil)
	if err != nil {
		end()
		return nil, fmt.Errorf("reach memory.mcp: %w", withoutURL(err))
	}
	return calls{m, session, end}, nil
}

func (m MCP) program(ctx context.Context) mcp.Transport {
	cmd := exec.CommandContext(ctx, m.Command[0], m.Command[1:]...) //nolint:gosec // the command is configured
	cmd.Env = m.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its children end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return &mcp.CommandTransport{Command: cmd, TerminateDuration: endTime}
}

type calls struct {
	MCP
	session *mcp.ClientSession
	end     context.CancelFunc
}

// Tell calls the tool. An error of the server's is told by its code only: its text may quote what it was told.
func (c calls) Tell(ctx context.Context, t *Told) error {
	result, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: c.Tool, Arguments: fill(c.Arguments, t)})
	switch wire := (*jsonrpc.Error)(nil); {
	case err == nil && result.IsError:
		return &RefusedError{"the tool " + c.Tool + " fails"}
	case errors.As(err, &wire):
		return &RefusedError{fmt.Sprintf("JSON-RPC error %d of the tool %s", wire.Code, c.Tool)}
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("call memory.mcp: %w", ctx.Err())
	case err != nil:
		return errors.New("call memory.mcp: the connection failed")
	}
	return nil
}

func (c calls) Close() {
	_ = c.session.Close()
	c.end()
}

// bearer sends a key along.
type bearer struct {
	http.RoundTripper
	key string
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.key != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+b.key)
	}
	return b.RoundTripper.RoundTrip(req) //nolint:wrapcheck // it is the transport's
}

// ParseArguments reads the arguments of a tool, an object of JSON.
func ParseArguments(text string) (map[string]any, error) {
	var arguments map[string]any
	if err := json.Unmarshal([]byte(text), &arguments); err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	return arguments, nil
}

// fill puts what is told in the place of {id}, {tenant}, {session}, {thread}, {time} and {findings}. An item of a list that is {findings} becomes an
// item for each; elsewhere they are lines.
func fill(arguments any, t *Told) any {
	var findings []any
	text := make([]string, len(t.Findings))
	for i, f := range t.Findings {
		text[i] = fmt.Sprintf("%s (%s): %s", f.Kind, f.Section, f.Text)
		findings = append(findings, text[i])
	}
	by := strings.NewReplacer("{id}", t.ID, "{tenant}", t.Tenant, "{session}", string(t.Session), "{thread}", string(t.Thread),
		"{time}", t.Time.Format(time.RFC3339), "{findings}", strings.Join(text, "\n"))
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return by.Replace(v)
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
