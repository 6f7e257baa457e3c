package redisstore

import (
	"crypto/tls"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

const (
	defaultPrefix  = "dp:"
	defaultTimeout = 500 * time.Millisecond
	defaultRest    = 250 * time.Millisecond
)

// Options configure a store, and are not looked at: package config does. Only Addrs is required.
type Options struct {
	Addrs      []string // host:port of the server, of the Sentinels, or of some nodes of the Cluster
	Username   string   // ACL user; empty is the default user
	Password   string
	DB         int         // not in a Cluster
	TLS        *tls.Config // nil is plain TCP
	MasterName string      // ask the Sentinels at Addrs for the master of this name
	Cluster    bool

	SentinelUsername string // with the Sentinels, which have users of their own
	SentinelPassword string

	Prefix  string        // of all keys, without braces; empty is "dp:"
	TTL     time.Duration // after the last write to a thread, then it expires; 0 never
	Content bool          // keep payloads; otherwise events are kept without them
	Keys    *seal.Keys    // encrypt payloads and summaries; nil: not
	Timeout time.Duration // for a read, connecting included; writes get twice as much; 0 is 500 ms
	Rest    time.Duration // between two probes of a server that let a call wait in vain; 0 is 250 ms
}

// longest is how much longer than its TTL a thread may be kept, so that not every write has to renew its lease.
const longest = time.Minute

// lease is for how long what is renewed is kept: the TTL and at most a minute, or a sixty-fourth of it.
func (s *Store) lease() time.Duration { return s.options.TTL + min(s.options.TTL/64, longest) }

// What a store holds to each server. Hundreds of requests at a time may each have a call under way: to wait for a
// connection would cost a slow server's latency again, and to make one costs some answers. So what a burst has made is kept
// for the next one, until it is idle for long.
const (
	maxConns  = 512
	idleConns = 256
	idleTime  = 5 * time.Minute
	buffer    = 16 << 10 // per direction; a value that is larger takes more than one read
)

// How long a Cluster's client pauses before it asks again, where a slot is on the move or its master is lost.
const (
	minPause = 4 * time.Millisecond
	maxPause = 32 * time.Millisecond
)

// client turns off all patience: a call has one deadline, and a request that cannot be served goes on without the
// store. What is worth a second try, the store knows better. Pipelines share the other calls' connections.
func (o Options) client() redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{
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
