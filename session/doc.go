// Package session is Dewpoint's domain: messages and the chain hash that identifies a history, threads and sessions,
// the append-only event log, condensations and the view that goes upstream.
//
// Everything in it but Registry and the Store contract is pure: no clock, no context, no logger, no protocol. A dialect
// splits a request into messages before they come here; a store (package boltstore or redisstore) keeps what is
// decided here.
package session
