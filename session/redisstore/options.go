package redisstore

import (
	"crypto/tls"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/dewpoint-proxy/dewpoint/session/redisstore/internal/nodes"
)

const (
	defaultPrefix  = "dp:"
	defaultTimeout = 500 * time.Millisecond
	defaultRest    = 250 * time.Millisecond
)

// Options configure a store. Only Addrs is required. Package config validates them.
type Options struct {
	Addrs      []string // host:port of the server, of the Sentinels, or of some nodes of the Cluster
	Username   string   // ACL user, empty for the default user
	Password   string
	DB         int         // not in a Cluster
	TLS        *tls.Config // nil for plain TCP
	MasterName string      // name of the master to get from the Sentinels at Addrs
	Cluster    bool

	SentinelUsername string // Sentinels have separate users
	SentinelPassword string

	Prefix  string        // of all keys, without braces; "dp:" by default
	TTL     time.Duration // a thread expires this long after its last write; 0 means never
	Timeout time.Duration // of a read, including connecting; writes get twice as much; 500 ms by default
	Rest    time.Duration // between two probes of a server that does not answer; 250 ms by default
}

// maxExtra is how much longer than its TTL a thread may live, so that not every write has to renew its lease.
const maxExtra = time.Minute

// lease returns the expiry that a renewal sets: the TTL plus a sixty-fourth of it, but at most maxExtra.
func (s *Store) lease() time.Duration { return s.options.TTL + min(s.options.TTL/64, maxExtra) }

// Connections to each server. Hundreds of concurrent requests may each have a call in progress. Waiting for a connection
// would double a slow server's latency, and opening one takes several round trips. The connections of a burst are therefore
// kept for the next burst, until they have been idle for long.
const (
	maxConns  = 512
	idleConns = 256
	idleTime  = 5 * time.Minute
	buffer    = 16 << 10 // bytes per direction; a larger value takes more than one read
)

// How long a Cluster's client pauses before it tries again when a slot is being moved or its master is lost.
const (
	minPause = 4 * time.Millisecond
	maxPause = 32 * time.Millisecond
)

// client returns a client that does not retry: a call has one deadline, a request that cannot be served goes on without the
// store, and the store itself decides which commands to repeat (see attempt). Pipelines share the connections of other calls.
func (o Options) client() nodes.Client {
	return nodes.Open(&redis.UniversalOptions{
		Addrs: o.Addrs, Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLS,
		MasterName: o.MasterName, IsClusterMode: o.Cluster, Dialer: o.dial,
		SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
		ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, MinRetryBackoff: minPause, MaxRetryBackoff: maxPause,
		DialTimeout: o.Timeout, ReadTimeout: 2 * o.Timeout, WriteTimeout: 2 * o.Timeout, PoolTimeout: o.Timeout,
		PoolSize: maxConns, MaxIdleConns: idleConns, ConnMaxIdleTime: idleTime, PipelinePoolSize: -1,
		ReadBufferSize: buffer, WriteBufferSize: buffer,
		Protocol: 2, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}
