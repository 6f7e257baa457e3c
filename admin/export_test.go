package admin

// Routes lists what the API serves: method and path.
func Routes() []string {
	out := []string{"GET " + base + "/openapi.yaml"}
	for _, r := range (&api{}).routes() {
		out = append(out, r.method+" "+base+r.path)
	}
	return out
}

// Document is the API's description.
func Document() []byte { return document }
