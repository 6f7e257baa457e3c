package split

import (
	"bytes"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Keeps is how long a body of OpenAI's asks for its prefix to be kept in the prompt cache, 0 if it does not say.
// https://platform.openai.com/docs/guides/prompt-caching
func Keeps(body []byte) time.Duration {
	const retention = "prompt_cache_retention"
	if bytes.Contains(body, []byte(retention)) && Member(rawjson.ValueOf(body), retention).Text() == "24h" {
		return 24 * time.Hour
	}
	return 0
}
