package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// explainRequest carries a request as its client sends it.
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

// explain reports which thread a request belongs to, and why. It logs nothing.
func (a *api) explain(r *http.Request, _ *query) (any, error) {
	var asked explainRequest
	if err := a.readBody(r, &asked); err != nil {
		return nil, err
	}
	if len(asked.Body) == 0 {
		return nil, badParam("body", `Send {"tenant": ..., "dialect": ..., "headers": {...}, "body": {...}}, where body is the request as its client sends it.`)
	}
	tenant, err := a.tenantFor(r, asked.Tenant)
	if err != nil {
		return nil, err
	}
	if err := a.noteRead(r, "explain", tenant); err != nil {
		return nil, err
	}
	header := http.Header{}
	for name, value := range asked.Headers {
		header.Set(name, value)
	}
	x, err := a.o.Forwarder.Explain(r.Context(), engine.Question{
		Tenant: tenant, Dialect: asked.Dialect, Header: header.Get, Query: asked.Query, Body: asked.Body,
	})
	switch {
	case errors.Is(err, engine.ErrUnread):
		return nil, badParam("body", "%v", err)
	case errors.Is(err, engine.ErrNotServed):
		return nil, badParam("dialect", "Give the protocol of the body: chat, messages or responses.")
	case err != nil:
		return nil, err // it names its operation
	}
	out := explanationBody{
		Relation: string(x.Relation.Kind), Cause: string(x.Cause), Meaning: meaning(&x),
		Session: string(x.Session), Thread: string(x.Thread), Parent: string(x.Relation.Parent),
		Source: string(x.Source), Purpose: string(x.Purpose), SessionKey: x.Key, Known: x.Known, System: x.Relation.System,
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

type unsealRequest struct {
	Tenant string `json:"tenant"`
	Sealed string `json:"sealed"` // the content of a compaction that the proxy gave to a client
}

// unseal decrypts the record in a compaction that the proxy gave to a client.
func (a *api) unseal(r *http.Request, _ *query) (any, error) {
	var asked unsealRequest
	if err := a.readBody(r, &asked); err != nil {
		return nil, err
	}
	if asked.Sealed == "" {
		return nil, badParam("body", `Send {"tenant": ..., "sealed": "dewpoint.1..."}, where sealed is the content of a compaction that this proxy made.`)
	}
	tenant, err := a.tenantFor(r, asked.Tenant)
	if err != nil {
		return nil, err
	}
	if err := a.noteRead(r, "unseal", tenant); err != nil {
		return nil, err
	}
	text, err := a.o.Forwarder.Unseal(r.Context(), tenant, asked.Sealed)
	if errors.Is(err, engine.ErrForeign) || errors.Is(err, engine.ErrOldKey) {
		return nil, badParam("sealed", "It cannot be opened: %v.", err)
	}
	return map[string]string{"record": text}, err
}

// readBody decodes a JSON body of at most MaxBytes. Unknown members are an error.
func (a *api) readBody(r *http.Request, into any) error {
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, a.o.MaxBytes))
	if err != nil {
		return fault(http.StatusRequestEntityTooLarge, "body_too_large", "The body could not be read, or is larger than %d bytes.", a.o.MaxBytes)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badParam("body", "The body is not valid: %v.", err)
	}
	return nil
}

// tenantFor returns the tenant that a request names, if its sender may see it.
func (a *api) tenantFor(r *http.Request, name string) (string, error) {
	tenant, err := a.resolveTenant(name)
	if err == nil && !who(r).sees(tenant) {
		return "", fault(http.StatusForbidden, "not_permitted", "The token does not open this tenant.")
	}
	return tenant, err
}

// resolveTenant checks the name of a tenant. It may be empty if there is only one tenant.
func (a *api) resolveTenant(name string) (string, error) {
	all := a.o.Settings.Tenants()
	if name == "" && len(all) == 1 {
		return all[0].Name, nil
	}
	if !slices.ContainsFunc(all, func(t Tenant) bool { return t.Name == name }) {
		return "", badParam("tenant", "Give the name of a configured tenant.")
	}
	return name, nil
}

// meaning explains the relation and its cause in a sentence.
func meaning(x *engine.Explanation) string {
	switch x.Relation.Kind {
	case session.RelationContinuation:
		if x.Relation.System {
			return "The request continues the thread. Only its system messages differ, which does not start a new thread."
		}
		return "The request continues the thread."
	case session.RelationReplay:
		return "The request repeats messages that the thread already has."
	}
	if text := causeMeanings[x.Cause]; text != "" {
		return text
	}
	if x.Relation.Kind == session.RelationLink {
		return "The request belongs to its parent's session, because it carries content of the parent or its client names the parent. " +
			"It shares no messages with the parent."
	}
	return "The request starts a conversation: none of its messages are known, and it has no answers yet."
}

var causeMeanings = map[session.Cause]string{
	session.CauseUser:     "A user message differs from the parent's message at that position.",
	session.CauseAnswer:   "A model's answer differs from the parent's at that position: the model was asked again, or the client changed the answer.",
	session.CauseResult:   "A tool result differs from the parent's at that position: the client cut or rewrote it.",
	session.CauseLeftOut:  "Messages that the parent has from that position on are missing.",
	session.CauseInserted: "There are messages at that position that the parent does not have.",
	session.CauseSide:     "The request is not part of the conversation (it asks for a title or a summary, for example), so it gets its own thread.",
	session.CauseUnknown: "The request contains answers, but none of its messages are known under its session key and credential: the key or the " +
		"credential differs, the session has expired or was deleted, or the conversation did not go through this proxy before.",
	session.CauseUnread: "The parent's log could not be read.",
}
