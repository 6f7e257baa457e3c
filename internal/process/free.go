package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Systems do not assign these ports by default: connections and listeners on port 0 get higher ones.
const firstPort, lastPort = 20_000, 32_767

// FreeAddr returns a free loopback address for a server that needs a fixed port. Systems do not assign the port to others, so a server
// can be killed and started there again.
func FreeAddr() (string, error) {
	var taken error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // not a secret
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			return addr, l.Close()
		}
		taken = err
	}
	return "", fmt.Errorf("find a free port: %w", taken)
}
