package proxy_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/gemini"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// TestEverySpellingOfThePathIsRead spells the path of chat completions in every way that some server accepts: each is read, and goes upstream in its plain
// spelling.
func TestEverySpellingOfThePathIsRead(t *testing.T) {
	r, got := mirrored(t, setup{})
	for _, path := range []string{
		"/v1/chat/completions", "/chat/completions", "/v1/v1/chat/completions", "/v1//v1/chat/completions", "/v1/chat/completions/",
		"/v1/chat//completions", "//v1/chat/completions", "/v1//chat/completions", "///chat///completions//",
		"/v1/chat/%63ompletions", "/v1/chat/%2563ompletions", "/%76%31/chat/completions", "/v1/chat%2fcompletions", "/v1%2Fchat/completions",
		"/v1/chat%5ccompletions", "/v1/chat\\completions", "/V1/Chat/Completions", "/v1;a=b/chat;c/completions;d=e", "/v1/chat/completions%20",
		"http://proxy.example/v1/chat//completions",
	} {
		w := r.dial()
		w.t = t
		w.send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + strconv.Itoa(len(hello)) + "\r\n\r\n" + hello)
		resp, body := w.answer(http.MethodPost)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Dewpoint-Session") == "" {
			t.Errorf("%s was not read: status %d, %s", path, resp.StatusCode, body)
		}
		if resp.StatusCode == http.StatusOK {
			if up := <-got; up.target != "/base/v9/chat/completions" || up.body != hello {
				t.Errorf("%s went to %s", path, up.target)
			}
		}
		w.Close()
	}
}

// TestIdentityIsNoEncoding sends bodies whose Content-Encoding names no encoding.
func TestIdentityIsNoEncoding(t *testing.T) {
	r, got := mirrored(t, setup{})
	for _, value := range []string{"identity", " Identity ", "identity, identity", ","} {
		resp, _ := r.ask(hello, "Content-Encoding", value)
		if resp.Header.Get("X-Dewpoint-Session") == "" {
			t.Errorf("%q: it was not read", value)
		}
		<-got
	}
}

// TestGeminiPaths: a path of Gemini's API brings its own version, whatever is in front of it.
func TestGeminiPaths(t *testing.T) {
	r, got := mirrored(t, setup{})
	for _, path := range []string{
		"/v1/v1beta/models/gemini-2.5-pro:generateContent", "/v1beta/models/gemini-2.5-pro:generateContent", "/v1/v1alpha/models/x:countTokens",
	} {
		w := r.dial()
		w.t = t
		w.send("POST " + path + "?alt=sse HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		if resp, _ := w.answer(http.MethodPost); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
		if up := <-got; up.target != "/base/"+strings.TrimLeft(strings.TrimPrefix(path, "/v1/"), "/")+"?alt=sse" {
			t.Errorf("%s went to %s", path, up.target)
		}
		w.Close()
	}
}

// TestModelsInPaths: a request whose path names the model is read, and its path goes upstream with the name as the client spelt it. If servers
// could read the path differently, the request passes unread.
func TestModelsInPaths(t *testing.T) {
	d := gemini.New(split.Options{})
	paths := newModelPaths(t, d)
	live := paths.rig.live
	live.Dialects = map[string]dialect.Dialect{gemini.GeneratePath: d, gemini.StreamPath: d, gemini.AssistGeneratePath: d}
	live.Counts = map[string]dialect.Dialect{gemini.CountPath: d}
	paths.rig.server.Swap(live)
	const body = `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`
	const project = "v1beta1/projects/P/locations/us-central1/publishers/google/models/"
	for path, want := range map[string]struct{ target, model string }{
		"/v1beta/models/Gemini-3:generateContent":                  {"/base/v1beta/models/Gemini-3:generateContent", "Gemini-3"},
		"/v1/v1beta/models/Gemini-3:StreamGenerateContent?alt=sse": {"/base/v1beta/models/Gemini-3:streamGenerateContent?alt=sse", "Gemini-3"},
		"/v1/models/gemini-3%3AgenerateContent?key=k":              {"/base/v9/models/gemini-3:generateContent?key=k", "gemini-3"},
		"/v1beta/models/a%20b:countTokens":                         {"/base/v1beta/models/a%20b:countTokens", "a b"},
		"/" + project + "gemini-3:generateContent":                 {"/base/" + project + "gemini-3:generateContent", "gemini-3"},
		"/v1beta/tunedModels/x:generateContent":                    {"/base/v1beta/tunedModels/x:generateContent", notOne},
		"/v1beta//models/gemini-3:generateContent":                 {"/base/v1beta//models/gemini-3:generateContent", ""},
		"/v1beta/models/gemini-3;a:generateContent":                {"/base/v1beta/models/gemini-3;a:generateContent", notOne},
		"/v1beta/models/gemini%252D3:generateContent":              {"/base/v1beta/models/gemini%252D3:generateContent", ""},
		"/v1internal:loadCodeAssist":                               {"/base/v1internal:loadCodeAssist", notOne},
		"/v1beta/models/gemini-3:embedContent":                     {"/base/v1beta/models/gemini-3:embedContent", notOne},
	} {
		paths.check(t, path, body, want.target, want.model)
	}
}

// modelPaths is a proxy in front of an upstream that shows what reached it. The model of a request is named by its path.
type modelPaths struct {
	rig   *rig
	got   <-chan seen
	model *atomic.Value // the model that was read last
}

// newModelPaths starts the proxy for a dialect; nil: Chat Completions.
func newModelPaths(t *testing.T, d dialect.Dialect) modelPaths {
	t.Helper()
	p := modelPaths{model: new(atomic.Value)}
	p.rig, p.got = mirrored(t, setup{
		dialect: d, models: func(name string) proxy.ModelInfo { p.model.Store(name); return proxy.ModelInfo{} },
	})
	return p
}

// notOne is the model of a path on which no requests are read.
const notOne = "not one"

// check sends a body to a path and checks where it goes upstream, and which model is read. An empty model means that the body passes unread.
func (p modelPaths) check(t *testing.T, path, body, target, model string) {
	t.Helper()
	p.model.Store("")
	w := p.rig.dial()
	w.t = t
	w.send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	resp, answer := w.answer(http.MethodPost)
	w.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %s: %s", path, resp.Status, answer)
		return
	}
	if up := <-p.got; up.target != target || up.body != body {
		t.Errorf("%s went to %s", path, up.target)
	}
	unread := ""
	switch model {
	case "":
		unread = "path"
	case notOne:
		model = ""
	}
	if resp.Header.Get("X-Dewpoint-Unread") != unread || p.model.Load() != model {
		t.Errorf("%s: model %q, %v", path, p.model.Load(), resp.Header)
	}
}
