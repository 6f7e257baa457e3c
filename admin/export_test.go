package admin

// Routes returns the method and path of each route.
func Routes() []string {
	out := []string{"GET " + base + "/openapi.yaml"}
	for _, r := range (&api{}).routes() {
		out = append(out, r.method+" "+base+r.path)
	}
	return out
}

// Document returns the OpenAPI document.
func Document() []byte { return document }
