package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// explainRequest is a request as its client sends it.
type explainRequest struct {
	Tenant  string            `json:"tenant"`
	Dialect string            `json:"dialect"`
	Headers map[string]string `json:"headers"`
	Query   string            `json:"query"`
	Body    json.RawMessage   `json:"body"`
}

type explanationBody struct {
	Relation   string     `json:"relation"`
	Cause      string     `json:"cause,omitempty"`
	Meaning    string     `json:"meaning"`
	Session    string     `json:"session,omitempty"`
	Thread     string     `json:"thread,omitempty"`
	Parent     string     `json:"parent,omitempty"`
	Source     string     `json:"source"`
	Purpose    string     `json:"purpose"`
	SessionKey string     `json:"session_key,omitempty"`
	Known      int        `json:"known"`
	System     bool       `json:"system_changed"`
	Differs    *differs   `json:"differs,omitempty"`
	WithoutKey *knownBody `json:"without_key,omitempty"`
}

type differs struct {
	Message  int    `json:"message"`
	Position int    `json:"position"`
	Kind     string `json:"kind,omitempty"`
	Seq      uint64 `json:"seq,omitempty"`
	Here     string `json:"here,omitempty"`
	There    string `json:"there,omitempty"`
}

type knownBody struct {
	Session string `json:"session"`
	Thread  string `json:"thread"`
	Known   int    `json:"known"`
}

// explain tells where a request belongs, and why. Nothing is logged.
func (a *api) explain(r *http.Request, _ *query) (any, error) {
	q, err := a.question(r)
	if err != nil {
		return nil, err
	}
	x, err := a.o.Forwarder.Explain(r.Context(), q)
	switch {
	case errors.Is(err, engine.ErrUnread):
		return nil, badParam("body", "%s", err.Error())
	case errors.Is(err, engine.ErrNotServed):
		return nil, badParam("dialect", "It is the protocol of body: chat, messages or responses.")
	case err != nil:
		return nil, err //nolint:wrapcheck // it names its operation
	}
	out := explanationBody{
		Relation: string(x.Relation.Kind), Cause: string(x.Cause), Meaning: meaning(&x), Session: string(x.Session), Thread: string(x.Thread),
		Parent: string(x.Relation.Parent), Source: string(x.Source), Purpose: string(x.Purpose), SessionKey: x.Key, Known: x.Known,
		System: x.Relation.System,
	}
	if x.Message >= 0 {
		out.Differs = &differs{Message: x.Message, Position: x.Pos, Here: x.Here, There: x.There}
		if e := x.Divergence.There; e != nil {
			out.Differs.Kind, out.Differs.Seq = e.Kind.String(), e.Seq
		}
	}
	if k := x.Keyless; k != nil {
		out.WithoutKey = &knownBody{Session: string(k.Session), Thread: string(k.Thread), Known: k.Pos}
	}
	return out, nil
}

// question reads what is asked.
func (a *api) question(r *http.Request) (engine.Question, error) {
	var asked explainRequest
	if err := a.readBody(r, &asked); err != nil {
		return engine.Question{}, err
	}
	if len(asked.Body) == 0 {
		return engine.Question{}, badParam("body", `Send {"tenant": ..., "dialect": ..., "headers": {...}, "body": {...}}, where body is the request as its client sends it.`)
	}
	var err error
	if asked.Tenant, err = a.tenantNamed(asked.Tenant); err != nil {
		return engine.Question{}, err
	}
	header := http.Header{}
	for name, value := range asked.Headers {
		header.Set(name, value)
	}
	return engine.Question{Tenant: asked.Tenant, Dialect: asked.Dialect, Header: header.Get, Query: asked.Query, Body: asked.Body}, nil
}

// readBody reads what is asked as JSON, bounded. What cannot be read, or has other members, leaves it empty.
func (a *api) readBody(r *http.Request, into any) error {
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, a.o.MostBytes))
	if err != nil {
		return fault(http.StatusRequestEntityTooLarge, "body_too_large", "The body could not be read, or is larger than %d bytes.", a.o.MostBytes)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badParam("body", "It cannot be read: %s.", err.Error())
	}
	return nil
}

// tenantNamed finds a tenant. Where there is one only, it need not be named.
func (a *api) tenantNamed(name string) (string, error) {
	all := a.o.Settings.Tenants()
	if name == "" && len(all) == 1 {
		return all[0].Name, nil
	}
	for _, t := range all {
		if t.Name == name {
			return name, nil
		}
	}
	return "", badParam("tenant", "Name a tenant that is configured.")
}

// meaning says it in a sentence.
func meaning(x *engine.Explanation) string {
	switch x.Relation.Kind {
	case session.RelationContinuation:
		if x.Relation.System {
			return "It continues the thread. Only its system messages are other ones, which splits nothing."
		}
		return "It continues the thread."
	case session.RelationReplay:
		return "The thread holds all of it already: it is sent again."
	}
	if said := meanings[x.Cause]; said != "" {
		return said
	}
	if x.Relation.Kind == session.RelationLink {
		return "It is in the session of its parent, by something that was relayed to it or by the parent that its client names, and shares no messages with it."
	}
	return "It begins a conversation: nothing of it is known, and it has no answer yet."
}

var meanings = map[session.Cause]string{
	session.CauseUser:     "A user's message is another one than the parent has at that position.",
	session.CauseAnswer:   "An answer of the model is another one than the parent has at that position: it was asked again, or the client changed it.",
	session.CauseResult:   "The result of a tool is another one than the parent has at that position: the client cut or rewrote it.",
	session.CauseLeftOut:  "Messages are missing that the parent has from that position on.",
	session.CauseInserted: "There are messages at that position which the parent does not have before the next one.",
	session.CauseSide:     "It is a request beside the conversation, such as for a title or a summary, and so has a thread of its own.",
	session.CauseUnknown: "It has answers already, and nothing of it is known under its session key and credential: one of them is another one, the " +
		"session has expired or was deleted, or the conversation did not pass here before.",
	session.CauseUnread: "The log of the parent could not be read.",
}
