package app

import (
	"net/http"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// TestReplicasShareLimits checks that two replicas with shared limits together serve only as many requests as one replica may, and that each
// replica applies the limits separately while Redis is unavailable.
func TestReplicasShareLimits(t *testing.T) {
	const most = 6
	for name, shared := range map[string]bool{"shared": true, "each its own": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := sessiontest.StartRedis(t)
			replica := func() *running {
				return run(t, zap.NewNop(), func(cfg *config.Config) {
					cfg.Store.Type, cfg.Store.Redis.Addrs = config.StoreRedis, []string{redis.Addr}
					cfg.Limits.Tenant = limit.Tenant{Requests: most, Tokens: 1_000_000, Shared: shared}
				})
			}
			replicas := []*running{replica(), replica()}
			play := func(what string, want int) {
				begun, served := time.Now(), 0
				for i := range 4 * most {
					resp, err := http.Get("http://" + replicas[i%2].Addr() + "/v1/models")
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					switch resp.StatusCode {
					case http.StatusOK:
						served++
					case http.StatusTooManyRequests:
					default:
						t.Errorf("status %d", resp.StatusCode)
					}
				}
				leaked := int(time.Since(begun).Minutes()*most)*2 + 2
				if served < want || served > want+leaked {
					t.Errorf("%s, %d were served, want %d and at most %d that leaked", what, served, want, leaked)
				}
			}
			if !shared {
				play("by each", 2*most)
				return
			}
			play("together", most)
			redis.Kill()
			play("without Redis", 2*most)
		})
	}
}
