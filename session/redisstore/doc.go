// Package redisstore keeps sessions in Redis 6 or newer: a single server, one found through Sentinel, or a Cluster.
//
// Places and traces are string keys of their own. A thread is two keys in one slot, its record and its log, so that a
// script can append to both at once: the record is a hash with the fields r (the record as the client wrote it), l (its
// length in positions, and when it began), n (log entries ever written), c (the list of condensations), k (of a fork, all
// its ancestors, whose logs it shares), o (the token of the last write, should it come twice), q (the log entry of a
// pending request to condense) and one s<seq> for each summary. The log is a list; another one holds the traces that the
// thread left, so that they can be deleted with it. A session is one hash, and a sorted set of the threads that are too
// many to list there. An experiment is a hash of sums, by arm, group and what is summed. All of a thread's keys expire together, TTL after its last write or that of a fork which shares it,
// and the secret never.
//
// The size is capped by the server's own maxmemory. Any key may be evicted by itself: none is needed to serve a request,
// and what was lost is written again. docs/redis.md tells what each policy loses, and what happens in each fault.
package redisstore
