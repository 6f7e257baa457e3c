// Package bench measures what Dewpoint adds to a request. It starts a fast mock upstream in its own process, and as processes
// of their own a bare fasthttp proxy, nginx where it is installed, Dewpoint over each of its stores and any peers; drives them
// in alternation with the same agent-shaped bodies; and checks byte for byte what arrived upstream. Its figures are ratios
// to the bare proxy in the same block of the same run: times differ from machine to machine, ratios hardly do.
package bench
