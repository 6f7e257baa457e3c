// Package tools serves tools by the Model Context Protocol, with which a person's agent reads that person's own sessions. They change nothing.
package tools

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// patience bounds the time of a call.
const patience = 20 * time.Second

// maxRequest is the size of the largest request, in bytes.
const maxRequest = 256 << 10

// Sessions finds the sessions of a client.
type Sessions interface {
	// Own returns session.ErrNotFound for a session that is not the client's.
	Own(ctx context.Context, c engine.Claim) (engine.Owned, error)
}

// New returns the handler of the tools. It keeps nothing between requests.
func New(sessions Sessions, version string) http.Handler {
	schemas := mcp.NewSchemaCache()
	return mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		caller, ok := proxy.CallerOf(r.Context())
		if !ok {
			return nil
		}
		return serverFor(client{sessions, caller}, version, schemas)
	}, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxRequest,
		DisableLocalhostProtection: true, // a key is needed, and pages of other origins get no answer
	})
}

// serverFor returns the tools of one client.
func serverFor(c client, version string, schemas *mcp.SchemaCache) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "dewpoint", Title: "Dewpoint", Version: version}, &mcp.ServerOptions{
		SchemaCache: schemas,
		Instructions: "Reads your own conversations as Dewpoint keeps them. A session is named by its id, from the header X-Dewpoint-Session of an answer, " +
			"or by the session key that your agent sends.",
	})
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}
	mcp.AddTool(s, &mcp.Tool{
		Name: "recall", Annotations: readOnly,
		Description: "Looks up what was said or read earlier in a conversation, also what is not shown to the model any more. A query gives the lines that say it, an " +
			"exact name, path or error first; an event's id, or a range, gives whole messages.",
	}, c.recall)
	mcp.AddTool(s, &mcp.Tool{
		Name: "record", Annotations: readOnly,
		Description: "Returns the newest record of a conversation: what the model sees in place of the older messages.",
	}, c.record)
	mcp.AddTool(s, &mcp.Tool{
		Name: "savings", Annotations: readOnly,
		Description: "Returns what condensing saved in a conversation, in tokens and dollars, less what it cost.",
	}, c.savings)
	return s
}

// client answers the calls of one client.
type client struct {
	sessions Sessions
	caller   proxy.Caller
}

// Named is what every tool needs.
type Named struct {
	Session string `json:"session" jsonschema:"the session's id, or the session key that the agent sends"`
}

// Asked is what recall needs.
type Asked struct {
	Named
	Query string `json:"query,omitempty" jsonschema:"a term exactly as it was written, or words"`
	Event string `json:"event,omitempty" jsonschema:"id of the event to show, as 17, or a range, as 17-20"`
}

// Saved is what savings returns.
type Saved struct {
	Session       string   `json:"session"`
	Condensations int      `json:"condensations"`
	TokensNotSent int64    `json:"tokens_not_sent"`
	OwnCalls      int      `json:"own_calls"`
	USD           *float64 `json:"usd,omitempty" jsonschema:"net of what rewriting caches and own calls cost; missing if a price is not known"`
}

const nanoPerUSD = 1e9

func (c client) recall(ctx context.Context, _ *mcp.CallToolRequest, in Asked) (*mcp.CallToolResult, any, error) {
	return c.text(ctx, in.Session, func(ctx context.Context, own *engine.Owned) (string, error) {
		return own.Recall(ctx, in.Query, in.Event)
	})
}

func (c client) record(ctx context.Context, _ *mcp.CallToolRequest, in Named) (*mcp.CallToolResult, any, error) {
	return c.text(ctx, in.Session, func(ctx context.Context, own *engine.Owned) (string, error) {
		text, err := own.Record(ctx)
		if err == nil && text == "" {
			text = "There is no record: nothing of this conversation was condensed into one yet, or its content is not kept."
		}
		return text, err
	})
}

func (c client) savings(ctx context.Context, _ *mcp.CallToolRequest, in Named) (*mcp.CallToolResult, Saved, error) {
	var saved Saved
	err := c.with(ctx, in.Session, func(ctx context.Context, own *engine.Owned) error {
		sum, made, err := own.Savings(ctx)
		saved = Saved{Session: string(own.ID), Condensations: made, TokensNotSent: sum.Tokens, OwnCalls: sum.Calls}
		if sum.Unpriced == "" {
			usd := float64(sum.NotSent+sum.Rewritten-sum.Nano) / nanoPerUSD
			saved.USD = &usd
		}
		return err
	})
	return nil, saved, err
}

// text answers with a text about a session.
func (c client) text(ctx context.Context, name string, read func(context.Context, *engine.Owned) (string, error)) (*mcp.CallToolResult, any, error) {
	var text string
	err := c.with(ctx, name, func(ctx context.Context, own *engine.Owned) (err error) {
		text, err = read(ctx, own)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
}

// with reads a session of the client. Errors are for the client to read, so that they say nothing of the store.
func (c client) with(ctx context.Context, name string, read func(context.Context, *engine.Owned) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	own, err := c.sessions.Own(ctx, engine.Claim{
		Tenant: c.caller.Tenant, Anonymous: c.caller.Anonymous, Credential: c.caller.Credential, Session: name,
	})
	if errors.Is(err, session.ErrNotFound) {
		return fmt.Errorf("there is no session %q of yours: name it by its id or its session key, and send the key that your agent sends, in the same header", name)
	}
	if err == nil {
		err = read(ctx, &own)
	}
	if err != nil {
		c.caller.Failed(err)
		return errors.New("the session cannot be read now: try again shortly")
	}
	return nil
}
