package plug

import (
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Portkey is the wire of Portkey's check default.webhook, before a request: the whole body comes, and the whole body goes back.
type Portkey struct {
	Paths map[string]string // where a client would send the body, by Portkey's name for the kind of request
}

// PortkeyPath is where its webhookURL leads.
const PortkeyPath = "/plugs/portkey"

// PortkeyPatience is how long the webhook may take, less than its own default timeout of three seconds.
const PortkeyPatience = time.Second

// Name implements Wire.
func (Portkey) Name() string { return "portkey" }

// Patience implements Wire.
func (Portkey) Patience() time.Duration { return PortkeyPatience }

// Read implements Wire.
func (w Portkey) Read(text []byte) (Ask, error) {
	o, err := open(text, "request", "requestType", "eventType", "metadata")
	if err != nil {
		return Ask{}, err
	}
	path, known := w.Paths[o["requestType"].Text()]
	if !o["eventType"].Is("beforeRequestHook") || !known {
		return Ask{}, ErrKind
	}
	request, err := members(o["request"].Raw, "json")
	if err != nil {
		return Ask{}, err
	}
	if !request.has("json", rawjson.Object) {
		return Ask{}, ErrNothing
	}
	about, err := members(o["metadata"].Raw, "session_id", "_user")
	if err != nil {
		return Ask{}, err
	}
	return Ask{Path: path, Body: request["json"].Raw, Session: about["session_id"].Text(), User: about["_user"].Text()}, nil
}

// Write implements Wire.
func (Portkey) Write(_ Ask, done Done) []byte {
	if done.Body == nil {
		return appendWhy([]byte(`{"verdict":true`), done)
	}
	out := append([]byte(`{"verdict":true,"transformedData":{"request":{"json":`), done.Body...)
	return append(out, "}}}"...)
}
