package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// imageRuns are agents that take a screenshot in each step, by protocol: the body of a step's request with all messages, and the messages that
// the next one has in addition.
func imageRuns() map[string]struct{ path, body, first, next string } {
	image := strings.Repeat("A", 40_000)
	return map[string]struct{ path, body, first, next string }{
		"chat": {
			"/v1/chat/completions", `{"model":"gpt-5.5","messages":[%s]}`, `{"role":"user","content":"Test the page."}`,
			`{"role":"assistant","content":"Step %[1]d."},{"role":"user","content":[{"type":"text","text":"Screen %[1]d:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}}]}`,
		},
		"messages": {
			"/v1/messages", `{"model":"claude-opus-4-5","max_tokens":100,"tools":[{"name":"look","input_schema":{"type":"object"}}],"messages":[%s]}`,
			`{"role":"user","content":"Test the page."}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%020[1]d","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%020[1]d","content":[{"type":"text","text":"Screen %[1]d:"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}}]}]}`,
		},
		"responses": {
			"/v1/responses", `{"model":"gpt-5.5","store":false,"tools":[{"type":"function","name":"look","parameters":{"type":"object"}}],"input":[%s]}`,
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"Test the page."}]}`,
			`{"type":"function_call","call_id":"call_%020[1]d","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"call_%020[1]d","output":[{"type":"input_text","text":"Screen %[1]d:"},{"type":"input_image","image_url":"data:image/png;base64,` + image + `"}]}`,
		},
	}
}

// TestTooManyBytesOfText: a history of text that is too large for upstream in bytes is condensed, and the run goes on.
func TestTooManyBytesOfText(t *testing.T) {
	t.Parallel()
	for protocol, run := range imageRuns() {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			const limit = 120_000
			s := newLenient(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
				if len(r.Body) > limit {
					return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusRequestEntityTooLarge, Message: "failed to parse request"}}
				}
				return fakeupstream.Answer{Content: "Done."}
			}})
			p := serveExcerpts(t, s)
			messages := run.first
			for n := range 24 {
				status, answer := postBody(t, p, run.path, fmt.Sprintf(run.body, messages))
				if status != http.StatusOK {
					t.Fatalf("step %d: %d: %.300s", n, status, answer)
				}
				next := imagesIn.ReplaceAllString(fmt.Sprintf(run.next, n), "]")
				messages += "," + strings.ReplaceAll(next, fmt.Sprintf("Screen %d:", n), strings.Repeat(fmt.Sprintf("line of page %d. ", n), 1000))
			}
			refused := 0
			for _, r := range s.Upstream.Requests() {
				if len(r.Body) > limit {
					refused++
				}
			}
			if refused == 0 || refused > 3 {
				t.Errorf("%d requests were refused", refused)
			}
		})
	}
}

// wantLargeTextUnchanged checks that a refusal for the number of images says nothing about bytes: a history of text with more bytes than the
// refused request is forwarded unchanged.
func wantLargeTextUnchanged(t *testing.T, s *setting, p *process, path, body, first, next string) {
	t.Helper()
	messages := strings.ReplaceAll(first, "Test the page.", "Read the pages.")
	for n := range 24 {
		text := imagesIn.ReplaceAllString(fmt.Sprintf(next, 100+n), "]")
		messages += "," + strings.ReplaceAll(text, fmt.Sprintf("Screen %d:", 100+n), strings.Repeat("internationalization ", 800))
	}
	sent := fmt.Sprintf(body, messages)
	if status, answer := postBody(t, p, path, sent); status != http.StatusOK {
		t.Fatalf("text: %d: %.300s", status, answer)
	}
	all := s.Upstream.Requests()
	if got := string(all[len(all)-1].Body); got != sent {
		t.Errorf("a text of %d bytes went as %d bytes", len(sent), len(got))
	}
}

// imagesIn matches the image at the end of a message's content.
var imagesIn = regexp.MustCompile(`,\{"type":"(image_url|image|input_image)"[^]]*\]`)

func serveExcerpts(t *testing.T, s *setting) *process {
	t.Helper()
	return serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: excerpts, trigger: limits, max_size: 1000}
shutdown: {delay: 0s, timeout: 1m}`, s.url, embedded(newStore(t)))))
}

func postBody(t *testing.T, p *process, path, body string) (status int, answer []byte) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, p.url()+path, strings.NewReader(body))
	ok(t, err)
	req.Header = http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}}
	resp, err := http.DefaultClient.Do(req)
	ok(t, err)
	answer, err = io.ReadAll(resp.Body)
	ok(t, err)
	ok(t, resp.Body.Close())
	return resp.StatusCode, answer
}

// TestTooManyBytesLoseOldImages: upstream refuses bodies above a limit, or with more than eight images. The oldest messages then go without
// theirs, and the run goes on. What is known of the limit saves the next refusal. The newest image is always there.
func TestTooManyBytesLoseOldImages(t *testing.T) {
	t.Parallel()
	refusals := map[string]struct {
		refuses func(body []byte) bool
		with    fakeupstream.APIError
	}{
		"bytes": {
			func(body []byte) bool { return len(body) > 400_000 },
			fakeupstream.APIError{Status: http.StatusRequestEntityTooLarge, Message: "Request exceeds the maximum size"},
		},
		"images": {
			func(body []byte) bool { return bytes.Count(body, []byte("AAAAAAAA\"")) > 8 },
			fakeupstream.APIError{Status: http.StatusBadRequest, Message: "Too many images in request. Max is 8."},
		},
	}
	for protocol, run := range imageRuns() {
		for kind, c := range refusals {
			t.Run(protocol+" "+kind, func(t *testing.T) {
				t.Parallel()
				s := newLenient(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
					if c.refuses(r.Body) {
						return fakeupstream.Answer{Error: &c.with}
					}
					return fakeupstream.Answer{Content: "Done."}
				}})
				p := serveExcerpts(t, s)
				messages := run.first
				for n := range 24 {
					status, answer := postBody(t, p, run.path, fmt.Sprintf(run.body, messages))
					if status != http.StatusOK {
						t.Fatalf("step %d: %d: %.300s", n, status, answer)
					}
					messages += "," + fmt.Sprintf(run.next, n)
				}
				if kind == "images" {
					wantLargeTextUnchanged(t, s, p, run.path, run.body, run.first, run.next)
				}
				refused, requests := 0, s.Upstream.Requests()
				if kind == "images" {
					requests = requests[:len(requests)-1] // without the text
				}
				for _, r := range requests {
					if c.refuses(r.Body) {
						refused++
					} else if r.Index > 0 && !bytes.Contains(r.Body[max(0, len(r.Body)-60_000):], []byte("AAAAAAAA\"")) {
						t.Errorf("request %d has lost its newest image", r.Index)
					}
				}
				if refused == 0 || kind == "bytes" && refused > 1 || refused > 8 {
					t.Errorf("%d of %d requests were refused", refused, len(requests))
				}
				last := requests[len(requests)-1].Body
				if !bytes.Contains(last, []byte(`Screen 1:`)) || !bytes.Contains(last, []byte("[image]")) {
					t.Errorf("the text beside an image went with it: %.300s", last)
				}
			})
		}
	}
}
