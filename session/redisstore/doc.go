// Package redisstore keeps sessions in Redis 6 or newer: a single server, one found through Sentinel, or a Cluster.
//
// Places and traces are string keys of their own. A thread is two keys in one slot, its record and its log, so that a
// script can append to both at once: the record is a hash with the fields r (the record as the client wrote it), l (its
// length in positions), n (log entries ever written), c (the list of condensations), k (threads whose log it shares) and
// one s<seq> for each summary. The log is a list. A session is one hash. All of a thread's keys expire together, TTL
// after its last write, and the secret never.
//
// The server should keep what it was told to keep: maxmemory-policy noeviction, or one of volatile-*.
package redisstore
