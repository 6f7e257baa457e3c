package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports that systems, as they come, do not give out unasked: connections and listeners on port 0 get higher ones.
const firstPort, lastPort = 20_000, 32_767

// FreeAddr gives a free address on the loopback, for a server that has to be told where to. Only who takes
// such ports, too, can come in between, so that a server can be killed and started there again.
func FreeAddr() (string, error) {
	var taken error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // no secret
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			return addr, l.Close()
		}
		taken = err
	}
	return "", fmt.Errorf("find a free port: %w", taken)
}
