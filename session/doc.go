// Package session is Dewpoint's domain: messages and the chain hash that identifies a history, threads and sessions, the
// append-only event log, condensations, and the view of a history that goes upstream.
//
// Everything in it except Registry and the Store contract is pure: no clock, context, logger or protocol. A dialect splits
// a request into messages before this package sees it, and a store (package boltstore, or records over redisstore) persists the result.
package session
