package admin_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/dewpoint-proxy/dewpoint/admin"
)

// spec validates responses against the OpenAPI document.
type spec struct {
	doc    *openapi3.T
	router routers.Router

	mu   sync.Mutex
	seen map[string]bool // operations that succeeded
}

func newSpec(t *testing.T) *spec {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(admin.Document())
	must(t, err)
	must(t, doc.Validate(t.Context()))
	router, err := gorillamux.NewRouter(doc)
	must(t, err)
	return &spec{doc: doc, router: router, seen: map[string]bool{}}
}

// check fails the test if a response is not as documented.
func (s *spec) check(t *testing.T, req *http.Request, resp *http.Response, body []byte) {
	t.Helper()
	if err := s.judge(t.Context(), req, resp, body); err != nil {
		t.Errorf("%s %s: %.600v\n%.2000s", req.Method, req.URL, err, body)
	}
}

// judge returns how a response differs from the document. It ignores paths outside the API.
func (s *spec) judge(ctx context.Context, req *http.Request, resp *http.Response, body []byte) error {
	if !strings.HasPrefix(req.URL.Path, "/api/") {
		return nil
	}
	route, params, err := s.router.FindRoute(req)
	if err != nil {
		if resp.StatusCode < http.StatusBadRequest {
			return fmt.Errorf("answered with %d, and not in the document", resp.StatusCode)
		}
		return nil
	}
	if resp.StatusCode < 300 {
		s.mu.Lock()
		s.seen[route.Operation.OperationID] = true
		s.mu.Unlock()
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route},
		Status:                 resp.StatusCode, Header: resp.Header,
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, ExcludeResponseBody: resp.Header.Get("Content-Type") == "application/yaml",
		},
	}
	return openapi3filter.ValidateResponse(ctx, input.SetBodyBytes(body))
}

func TestDocumentListsTheRoutes(t *testing.T) {
	s := newSpec(t)
	var documented []string
	for path, item := range s.doc.Paths.Map() {
		for method, op := range item.Operations() {
			documented = append(documented, method+" "+path)
			if op.OperationID == "" || op.Summary == "" || op.Responses.Default() == nil {
				t.Errorf("%s %s lacks an id, a summary or its errors", method, path)
			}
		}
	}
	served := admin.Routes()
	slices.Sort(documented)
	slices.Sort(served)
	if !slices.Equal(documented, served) {
		t.Errorf("documented\n%s\nserved\n%s", strings.Join(documented, "\n"), strings.Join(served, "\n"))
	}
}

// TestErrorCodesAreDocumented checks that the document lists exactly the codes that the package's source uses.
func TestErrorCodesAreDocumented(t *testing.T) {
	files, err := filepath.Glob("*.go")
	must(t, err)
	used := map[string]bool{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		must(t, err)
		for _, match := range regexp.MustCompile(`\bfault\(http\.Status\w+, "(\w+)"`).FindAllSubmatch(source, -1) {
			used[string(match[1])] = true
		}
	}
	documented := map[string]bool{}
	for _, code := range newSpec(t).doc.Components.Schemas["Error"].Value.Properties["error"].Value.Properties["code"].Value.Enum {
		documented[fmt.Sprint(code)] = true
	}
	if !maps.Equal(documented, used) {
		t.Errorf("documented are %v, used are %v", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(used)))
	}
}

// TestDocumentIsStrict checks that judge rejects undocumented responses.
func TestDocumentIsStrict(t *testing.T) {
	s := newSpec(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/tenants", nil)
	must(t, err)
	for body, good := range map[string]bool{
		`{"tenants":[]}`: true, `{"tenants":[],"more":1}`: false, `{}`: false, `{"tenants":[{"name":"a"}]}`: false, `[]`: false,
	} {
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}}
		if err := s.judge(t.Context(), req, resp, []byte(body)); (err == nil) != good {
			t.Errorf("%s: %v", body, err)
		}
	}
}
