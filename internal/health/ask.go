package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// ErrFailed says that a probe was answered, and not well.
var ErrFailed = errors.New("not healthy")

// asking bounds one question.
const asking = 4 * time.Second

// Ask puts a probe's question to the process whose admin port is at addr, and returns the answer as it came. The error is
// ErrFailed if that was a bad one, another if there was none.
func Ask(ctx context.Context, addr, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+Reachable(addr)+path, nil)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", path, err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // of our own: no proxy from the environment
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", path, err)
	}
	answer := strings.TrimSpace(string(text))
	if resp.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("%w: %s", ErrFailed, resp.Status)
	}
	return answer, nil
}
