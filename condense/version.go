package condense

import (
	"crypto/sha256"
	"encoding/hex"
)

// version stands for what a model is told to do by a request, whatever the events are that it is shown. testdata/prompts.list has those of
// all prompts there ever were, so that a record can be explained when the prompt has changed.
func version(r Request) string {
	sum := sha256.New()
	sum.Write([]byte(r.System))
	for _, s := range []*Schema{r.Function, r.Format} {
		if s != nil {
			sum.Write(s.JSON)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}
