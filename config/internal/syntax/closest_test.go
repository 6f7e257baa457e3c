package syntax

import "testing"

func TestClosest(t *testing.T) {
	keys := []string{"max_size", "max_tokens", "min_tokens", "keep_first", "base_url", "api_key", "api_keys", "listen"}
	for name, want := range map[string]string{
		"maxSize": "max_size", "MAX-SIZE": "max_size", "max_sise": "max_size", "listne": "listen", "Listen": "listen", "keepfrist": "keep_first",
		"url": "base_url", "max": "", "tokens": "", "apiKey": "api_key", "apikeys": "api_keys",
		"mxtokens": "max_tokens", "mix_tokens": "", // as close to min_tokens
		"colour": "", "x": "", "": "", "läuft": "",
	} {
		if got := Closest(name, keys); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
