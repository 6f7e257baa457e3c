// Package soak runs Dewpoint as users do, several replicas on one store with hundreds of agents at once, while processes
// are killed and upstream and summariser fail in every way they fail, and counts what comes of it.
//
// Three parties check: a front before the strict fake upstream judges every request that is forwarded; each agent judges
// every answer against what upstream sent and against the faults that were injected into this very exchange; and at the
// end every history that an agent holds is compared with the log in the store. Every generated text carries marks of
// its tenant and conversation, so what is mixed shows wherever it turns up.
//
// What agents say and when faults come follows from a seed. How requests and faults meet does not: processes are
// scheduled by the system. A violation tells the seed all the same, since the same schedule often finds it again.
package soak
