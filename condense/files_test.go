package condense_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestWithoutFiles: the oldest messages lose their images until the request has half of its bytes and half of its images. Messages that the model
// has not answered yet keep theirs, however large the request is. A message that loses its image keeps its text and gets a mark.
func TestWithoutFiles(t *testing.T) {
	d := messages.New(split.Options{})
	image := func(n int) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"Screen %d."},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}`, n, strings.Repeat("A", 4000))
	}
	var list []string
	for n := range 6 {
		list = append(list, image(n), `{"role":"assistant","content":"Seen."}`)
	}
	list = append(list, image(6))
	r, err := d.Split("", []byte(`{"messages":[`+strings.Join(list, ",")+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	v := session.Project(session.NewHistory(session.Hash{}, r.Messages), nil)
	in := input(&v)
	in.Codec = d
	for size, want := range map[int]int{30_000: 4, 8000: 4, 60_000: 6} { // half of 7 images are 3; of 60,000 bytes, all but the newest do not reach half
		job := condense.WithoutFiles(in, size)
		if job == nil {
			t.Fatalf("%d bytes: nothing goes", size)
		}
		c, _ := job.Plan()
		shown := session.Project(v.History, []session.Condensation{c})
		condense.Render(d, &shown)
		lost := 0
		for i := range shown.Items {
			raw := string(shown.Items[i].Raw)
			if strings.Contains(raw, "[image]") && strings.Contains(raw, "Screen") && !strings.Contains(raw, "AAAA") {
				lost++
			}
		}
		if newest := string(shown.Items[len(shown.Items)-1].Raw); lost != want || !strings.Contains(newest, "AAAA") {
			t.Errorf("%d bytes: %d messages have lost their images, want %d; the newest is %.60s", size, lost, want, newest)
		}
	}
	newest := session.Project(session.NewHistory(session.Hash{}, r.Messages[:1]), nil)
	in.View = &newest
	if condense.WithoutFiles(in, 30_000) != nil {
		t.Error("a message loses its image before the model has answered it")
	}
}
