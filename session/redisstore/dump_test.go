package redisstore_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
)

// dump returns every key with the prefix on every node, and its value.
func dump(t testing.TB, o redisstore.Options, prefix string) map[string]string {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: o.Addrs, IsClusterMode: o.Cluster, Protocol: 2})
	defer client.Close()
	cluster, is := client.(*redis.ClusterClient)
	if !is {
		return dumpNode(t, t.Context(), client, prefix)
	}
	all, mu := map[string]string{}, sync.Mutex{}
	err := cluster.ForEachMaster(t.Context(), func(ctx context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(all, dumpNode(t, ctx, c, prefix))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func dumpNode(t testing.TB, ctx context.Context, c redis.Cmdable, prefix string) map[string]string {
	t.Helper()
	all := map[string]string{}
	keys, err := c.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		kind, err := c.Type(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		var value any
		switch kind {
		case "string":
			value, err = c.Get(ctx, key).Result()
		case "list":
			value, err = c.LRange(ctx, key, 0, -1).Result()
		case "hash":
			value, err = c.HGetAll(ctx, key).Result() // maps are printed in the order of their keys
		case "zset":
			value, err = c.ZRange(ctx, key, 0, -1).Result()
		default:
			t.Fatalf("%q is a %s", key, kind)
		}
		if err != nil {
			t.Fatal(err)
		}
		all[key] = fmt.Sprintf("%q", value)
	}
	return all
}

// damage makes change replace an entry of a thread's log.
func damage(t testing.TB, o redisstore.Options, prefix string, id session.ThreadID, seq uint64, change func([]byte) []byte) {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: o.Addrs, IsClusterMode: o.Cluster, Protocol: 2})
	defer client.Close()
	key, at := prefix+"t:{"+string(id)+"}/e", int64(seq)-1
	entry, err := client.LIndex(t.Context(), key, at).Bytes()
	must(t, err)
	must(t, client.LSet(t.Context(), key, at, change(entry)).Err())
}
