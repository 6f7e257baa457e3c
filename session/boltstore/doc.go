// Package boltstore keeps sessions in one local file, with no server to install.
//
// Writes are queued in memory, where reads see them at once, and one goroutine commits whatever has gathered as a single
// transaction. So an append costs no disk access, a burst costs one fsync, and a crash loses at most the last writes,
// each of them whole. The file belongs to one process at a time. It does not shrink, but reuses its space.
package boltstore
