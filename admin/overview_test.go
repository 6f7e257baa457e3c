package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

var mainPart = regexp.MustCompile(`(?s)<main.*</main>`)

// overviewFor returns the content of the overview that a token opens.
func (g *guarded) overviewFor(token, query string) string {
	g.t.Helper()
	status, page := g.fetch(g.browser(), http.MethodGet, "/"+query, "", "Authorization", "Bearer "+token)
	if status != http.StatusOK {
		g.t.Fatalf("%d %s", status, page)
	}
	return mainPart.FindString(page)
}

// TestTheOverviewShowsFiguresOfItsReadersTenants checks that a token that is limited to a tenant sees that tenant's figures only, and that they are
// those of the API.
func TestTheOverviewShowsFiguresOfItsReadersTenants(t *testing.T) {
	g := startGuarded(t)
	var all, limited string
	sessiontest.Eventually(t, "the overview shows the figures of the API", func() error { // they are written after the answer
		var report struct {
			Rows []struct {
				Tenant   string
				Requests int
			}
		}
		g.get("/api/v1/savings?since=1d&by=tenant", &report)
		all, limited = g.overviewFor(token, ""), g.overviewFor("token of viewer of a", "")
		if len(report.Rows) != 2 {
			return fmt.Errorf("%+v", report)
		}
		for _, row := range report.Rows {
			cells := fmt.Sprintf(`<td class="n">%s</td><td class="num">%d</td>`, row.Tenant, row.Requests)
			if !strings.Contains(all, cells) || strings.Contains(limited, cells) != (row.Tenant == "alpha") {
				return fmt.Errorf("%s: of all %s; of alpha %s", cells, all, limited)
			}
		}
		return nil
	})
	if strings.Contains(limited, "beta") {
		t.Errorf("the overview of alpha names another tenant: %s", limited)
	}
	for _, want := range []string{"bill; ", "tokens not sent, of ", "Saved a day", "By model", agentModel, ">Own calls<", "No tenant has a budget.", "No sessions are held out."} {
		if !strings.Contains(limited, want) {
			t.Errorf("the overview lacks %q: %s", want, limited)
		}
	}
	if week := g.overviewFor(token, "?days=7"); !strings.Contains(week, "<h1>The last 7 days</h1>") || strings.Count(week, "<title>") > 2*7 {
		t.Errorf("of 7 days: %s", week)
	}
}

// TestTheOverviewShowsBudgetsAndHoldouts checks that a spent budget stands among what is wrong, and that held-out sessions are compared.
func TestTheOverviewShowsBudgetsAndHoldouts(t *testing.T) {
	g := &guarded{rig: start(t, func(c *config.Config) {
		c.Admin.Token = token
		c.Limits.Tenant.Budget = limit.Budget{Tokens: 10, Period: limit.Month}
		c.Holdout.Share = 0.25
	})}
	g.send(turns("gardening", 1))
	var page string
	sessiontest.Eventually(t, "the overview shows the budget and the holdout", func() error { // they are charged after the answer
		page = g.overviewFor(token, "")
		for _, want := range []string{"The budget of tenant default is spent.", "Raise limits.budget", "25% of sessions are held out", "Verdict: not known yet."} {
			if !strings.Contains(page, want) {
				return fmt.Errorf("it lacks %q: %s", want, page)
			}
		}
		return nil
	})
	if strings.Index(page, "is spent.") > strings.Index(page, `class="tiles"`) {
		t.Error("what is wrong does not come first")
	}
}

// awayJournal is a journal in a store that cannot be reached.
type awayJournal struct{ admin.Journal }

func (awayJournal) Rows(context.Context, time.Time, time.Time) ([]account.Row, error) {
	return nil, fmt.Errorf("read totals: %w", session.ErrUnavailable)
}

// TestTheOverviewSaysWhatIsDegraded checks that the overview opens while the store is away, and says what is wrong and what to do.
func TestTheOverviewSaysWhatIsDegraded(t *testing.T) {
	store, err := boltstore.Open(boltstore.Options{Path: t.TempDir() + "/store.db"})
	must(t, err)
	defer store.Close()
	api := admin.New(admin.Options{
		Store: store, Archive: store, Journal: awayJournal{}, Settings: noSettings{}, Metrics: http.NotFoundHandler(), Health: http.NotFoundHandler(), MaxBytes: 1 << 20, OnError: func(error) {},
		Troubles: func(context.Context) []admin.Trouble {
			return []admin.Trouble{{Check: "store", Detail: "unavailable: requests are forwarded unchanged"}, {Check: "new", Detail: "odd"}}
		},
	})
	w := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	req.Host = "localhost"
	api.ServeHTTP(w, req)
	page := w.Body.String()
	for _, want := range []string{"The store is degraded.", "Unavailable: requests are forwarded unchanged.", "Check that its disk has room", "The check new fails.", "The store cannot be read at the moment."} {
		if !strings.Contains(page, want) {
			t.Errorf("%d: the overview lacks %q: %s", w.Code, want, page)
		}
	}
}
