package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// TestLostSummary checks that a condensation whose summary was evicted applies neither to views nor to requests.
func TestLostSummary(t *testing.T) {
	r := start(t, stores()["redis"](t))
	conversation := turns("ships", 15)
	p := r.grow(conversation[:14], 2)
	client := redis.NewClient(&redis.Options{Addr: r.cfg.Store.Redis.Addrs[0]})
	defer client.Close()
	lost := int64(0)
	for key := range r.contents() {
		if fields := client.HKeys(t.Context(), key).Val(); strings.Contains(key, p.thread) {
			for _, field := range fields {
				if strings.Trim(field, "0123456789") == "s" {
					lost += client.HDel(t.Context(), key, field).Val()
				}
			}
		}
	}
	if lost == 0 {
		t.Fatal("there was no summary")
	}
	r.restart() // drops the summary from memory
	var view struct{ Items, Applied []any }
	r.get(p.url("/view"), &view)
	if len(view.Items) != 14 || len(view.Applied) != 0 {
		t.Errorf("%d items under %d condensations", len(view.Items), len(view.Applied))
	}
	var list struct{ Condensations []struct{ Summary string } }
	r.get(p.url("/condensations"), &list)
	if len(list.Condensations) == 0 || list.Condensations[0].Summary != "" {
		t.Errorf("condensations %+v", list.Condensations)
	}
	if p = r.ask(conversation); p.condensed == "" {
		t.Error("not condensed again")
	}
	r.compare(p)
}

// TestDamagedEntry checks that a damaged entry of a log is marked, and that all others are shown.
func TestDamagedEntry(t *testing.T) {
	r := start(t, stores()["redis"](t))
	p := r.ask(turns("ships", 5))
	client := redis.NewClient(&redis.Options{Addr: r.cfg.Store.Redis.Addrs[0]})
	defer client.Close()
	must(t, client.LSet(t.Context(), "dp:t:{"+p.thread+"}/e", 3, "garbage").Err())
	var list struct {
		Events []struct {
			Seq     int
			Kind    string
			Message any
		}
	}
	r.get(p.url("/events?content=true"), &list)
	for i, e := range list.Events {
		if damaged := i == 3; e.Seq != i+1 || (e.Kind == "unreadable") != damaged || (e.Message == nil) != damaged {
			t.Errorf("entry %d: %+v", i+1, e)
		}
	}
	if len(list.Events) < 5 {
		t.Errorf("%d entries are shown", len(list.Events))
	}
	r.call(http.MethodGet, p.url("/view")).fails(t, http.StatusConflict, "log_incomplete")
}

// TestWithoutTheKey checks that everything but content can be read if the encryption key is no longer configured.
func TestWithoutTheKey(t *testing.T) {
	key := func(c string) config.Secret { return config.Secret(strings.Repeat(c, 64)) }
	r := start(t, func(c *config.Config) {
		c.Store.Encryption = config.Encryption{Active: "old", Keys: map[string]config.Secret{"old": key("1")}}
	})
	p := r.grow(turns("ships", 15), 2)
	r.compare(p)
	r.cfg.Store.Encryption = config.Encryption{Active: "new", Keys: map[string]config.Secret{"new": key("2")}}
	r.restart()
	var list struct {
		Condensations []struct {
			Summary string
			Hidden  []any
		}
	}
	r.get(p.url("/condensations"), &list)
	if len(list.Condensations) == 0 || list.Condensations[0].Summary != "" || len(list.Condensations[0].Hidden) == 0 {
		t.Errorf("condensations %+v", list.Condensations)
	}
	for _, path := range []string{"/view", "/diff"} {
		r.call(http.MethodGet, p.url(path)).fails(t, http.StatusConflict, "content_not_kept")
	}
	if a := r.call(http.MethodGet, p.url("/events?content=true")); a.StatusCode != http.StatusOK || strings.Contains(string(a.body), "message") {
		t.Errorf("events: %d %.300s", a.StatusCode, a.body)
	}
	r.get(p.url("/savings"), new(any))
	if a := r.call(http.MethodDelete, "/api/v1/sessions/"+p.session); a.StatusCode != http.StatusNoContent {
		t.Errorf("delete: %d %s", a.StatusCode, a.body)
	}
}
