package source

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzLoad feeds any text to both formats: Load never panics, every error is a Problems with keys and messages, and an accepted file
// survives a round trip through Effective.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, filepath.Ext(file) == ".toml")
	}
	f.Add([]byte("a: &a [*a]\n<<: *a\n? x\n: y\n"), false)
	f.Add([]byte("a.b.\"c d\" = [{x = 1}]\n[[a.e]]\n[a.e.f]\n"), true)
	f.Fuzz(func(t *testing.T, text []byte, isTOML bool) {
		if len(text) > 4<<10 || !bytes.Equal(text, bytes.ToValidUTF8(text, nil)) {
			return
		}
		extension := ".yaml"
		if isTOML {
			extension = ".toml"
		}
		cfg, err := buildText(extension, string(text), fixtureEnv()...)
		if err == nil {
			wantRoundTrip(t, cfg)
			return
		}
		for _, problem := range problemsOf(err) {
			if problem.Key == "" || problem.Message == "" {
				t.Errorf("%#v", problem)
			}
		}
		if len(problemsOf(err)) == 0 {
			t.Errorf("no problem in %v", err)
		}
	})
}
