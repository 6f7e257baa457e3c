package dialect

// Asker is the part of a Dialect by which the proxy asks models questions of its own. The dialect's Tee reads the answers.
type Asker interface {
	// Question encodes a question. If a server refuses a member of it, the question is asked again without that member.
	Question(q Question) Object
	// Place returns the path and the query to which a question goes, below the base URL. before is the path at which the client asks, without
	// the API's own: that of a deployment, or whatever the dialect's paths have before a model's method.
	Place(before string, q Question) (path, query string)
	// Servers says how servers of the protocol take questions.
	Servers() Servers
}

// Question is a question to a model, which has no history.
type Question struct {
	Model, System, User string
	MaxOutput           int      // tokens
	Temperature         *float32 // nil: not sent
	Effort              string   // of reasoning, as the server calls it; empty: not sent
	LeastEffort         string   // the lowest effort that the model accepts; sent by protocols with OpenAI's words for efforts if Effort is empty
	Function            *Schema  // a function that the model must call; nil: none
	Format              *Schema  // schema of the answer's text; nil: any text
	Streamed            bool     // the answer should be a stream of events
	Before              string   // see Asker.Place

	// Where a protocol has them as options:
	Limit string // the parameter that limits the answer, one of Servers.Limits; empty: the usual one
	Role  string // of the instructions; empty: the usual one
}

// Schema is a JSON schema, of the arguments of a function or of an answer.
type Schema struct {
	Name        string
	Description string
	JSON        []byte // the schema
}

// In adds the schema's name and description to an object.
func (s *Schema) In(o Object) Object {
	o["name"] = s.Name
	if s.Description != "" {
		o["description"] = s.Description
	}
	return o
}

// Object is a JSON object that the proxy writes itself.
type Object = map[string]any

// Raw is JSON text in an Object.
type Raw []byte

// MarshalJSON implements json.Marshaler.
func (r Raw) MarshalJSON() ([]byte, error) { return r, nil }

// Servers says how the servers of a protocol take questions.
type Servers struct {
	Differ   bool     // there are many of them, of which some have no streams, roles or parameters
	Limits   []string // the members of a question that limit the answer, of which it has one
	Required bool     // they refuse a question without one
	Header   string   // that every call must have, as "name:value", if the client sends none of that name; empty: none
}
