package fakeupstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

func TestRecord(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	body := `{ "model":"m", "stream":true, "messages":[ {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},  {"role":"user","content":"c"}], "x":1 }`
	r := newPost(guard(t), t, s.URL()+"/v1/chat/completions?beta=1", body)
	r.Header["X-Odd"] = []string{"1", "2"}
	resp, err := newClient(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, resp.Body)
	_ = resp.Body.Close()
	all, err := s.WaitEnded(guard(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	got := all[0]
	if got.Method != http.MethodPost || got.Path != "/v1/chat/completions?beta=1" || string(got.Body) != body || len(got.Header["X-Odd"]) != 2 {
		t.Errorf("%+v", got)
	}
	if got.Model != "m" || !got.Stream || len(got.Messages) != 2 || string(got.Messages[1]) != `{"role":"user","content":"c"}` || got.Text() != "a\nb\n\nc" {
		t.Errorf("%+v text %q", got, got.Text())
	}
	if got.Status != 200 || got.Phase != fakeupstream.PhaseDone || got.Refused != nil || got.Cancelled || got.Summary {
		t.Errorf("%+v", got)
	}
}

func TestRecordKeepsTheNewest(t *testing.T) {
	s := start(t, fakeupstream.Options{Keep: 2})
	for range 5 {
		askBody(t, s, hello)
	}
	if all := s.Requests(); len(all) != 2 || all[0].Index != 3 || all[1].Index != 4 {
		t.Errorf("%+v", all)
	}
	if _, err := s.Wait(guard(t), 5); err != nil {
		t.Error("what was let go does not count:", err)
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := s.WaitFor(ctx, func([]fakeupstream.Request) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestWaitEndsWithTheContextMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := fakeupstream.New(fakeupstream.Options{}).Wait(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	s := start(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: r.Text()}
	}})
	client, ctx := newClient(t), guard(t)
	const clients, rounds = 8, 10
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range rounds {
				word := fmt.Sprint("word", c, "x", i)
				resp, err := client.Do(newPost(ctx, t, s.URL()+"/chat/completions", conversation(`{"role":"user","content":"`+word+`"}`)))
				if err != nil {
					t.Error(err)
					return
				}
				if resp.StatusCode != 200 {
					t.Errorf("%s: %d", word, resp.StatusCode)
				}
				_ = resp.Body.Close()
			}
		})
	}
	wg.Wait()
	all, err := s.WaitEnded(ctx, clients*rounds)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range all {
		if r.Index != i {
			t.Errorf("index %d at %d", r.Index, i)
		}
	}
}
