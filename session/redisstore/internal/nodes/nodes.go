// Package nodes opens the client of a Redis server or Cluster and reaches its nodes. It is a package of its own because a package that mentions
// *redis.Client or *redis.ClusterClient compiles some 1,500 methods of theirs again, and package redisstore is compiled with every change of
// package session.
package nodes

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Client is a redis.UniversalClient without the methods that mention *redis.Client.
type Client interface {
	redis.Cmdable
	AddHook(hook redis.Hook)
	Close() error
}

// Open returns a client. It connects when it is used.
func Open(o *redis.UniversalOptions) Client { return redis.NewUniversalClient(o) }

// Ping pings every server that calls go to. A Cluster with one silent master is not healthy.
func Ping(ctx context.Context, c Client) error {
	if cluster, ok := c.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return node.Ping(ctx).Err() })
	}
	return c.Ping(ctx).Err()
}

// LookUp makes a Cluster's client look up in the background who serves which slots. Otherwise it would do so up to a minute later, and try to
// connect to a dead master until then. Inlined, it would have the caller's package compile the methods of the Cluster's client.
//
//go:noinline
func LookUp(ctx context.Context, c Client) {
	if cluster, ok := c.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

// Node is a server with separate keys. A single server has no address here, because a failover may change it.
type Node struct {
	Addr   string
	Client redis.Cmdable
}

// Masters returns the servers that hold keys, sorted by address. A Cluster may have none.
func Masters(ctx context.Context, c Client) ([]Node, error) {
	cluster, ok := c.(*redis.ClusterClient)
	if !ok {
		return []Node{{Client: c}}, nil
	}
	var mu sync.Mutex
	var nodes []Node
	err := cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, Node{c.Options().Addr, c})
		return nil
	})
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Addr, b.Addr) })
	return nodes, err
}
