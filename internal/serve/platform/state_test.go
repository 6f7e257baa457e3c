package platform

import (
	"path/filepath"
	"testing"
)

func TestConfigFolder(t *testing.T) {
	home, other := filepath.Join(t.TempDir(), "ada"), t.TempDir()
	for _, c := range []struct {
		system string
		env    map[string]string
		want   string // empty: an error
	}{
		{"linux", map[string]string{"HOME": home}, filepath.Join(home, ".config", "dewpoint")},
		{"linux", map[string]string{"HOME": home, "XDG_CONFIG_HOME": other}, filepath.Join(other, "dewpoint")},
		{"linux", map[string]string{"HOME": home, "XDG_CONFIG_HOME": "relative"}, filepath.Join(home, ".config", "dewpoint")},
		{"linux", nil, ""},
		{"darwin", map[string]string{"HOME": home}, filepath.Join(home, "Library", "Application Support", "dewpoint")},
		{"darwin", map[string]string{"HOME": home, "XDG_CONFIG_HOME": other}, filepath.Join(other, "dewpoint")},
		{"windows", map[string]string{"HOME": home, "APPDATA": other}, filepath.Join(other, "dewpoint")},
		{"windows", map[string]string{"HOME": home}, ""},
	} {
		got, err := configFolder(c.system, "dewpoint", func(name string) string { return c.env[name] })
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s, %v: %q, %v, want %q", c.system, c.env, got, err, c.want)
		}
	}
}

func TestStateFolder(t *testing.T) {
	home, other := filepath.Join(t.TempDir(), "ada"), t.TempDir()
	for _, c := range []struct {
		system string
		env    map[string]string
		want   string // empty: an error
	}{
		{"linux", map[string]string{"HOME": home}, filepath.Join(home, ".local", "state", "dewpoint")},
		{"linux", map[string]string{"HOME": home, "XDG_STATE_HOME": other}, filepath.Join(other, "dewpoint")},
		{"linux", map[string]string{"XDG_STATE_HOME": other}, filepath.Join(other, "dewpoint")},
		{"linux", map[string]string{"HOME": home, "XDG_STATE_HOME": "relative"}, filepath.Join(home, ".local", "state", "dewpoint")},
		{"linux", nil, ""},
		{"darwin", map[string]string{"HOME": home, "XDG_STATE_HOME": other}, filepath.Join(home, "Library", "Application Support", "dewpoint")},
		{"darwin", nil, ""},
		{"windows", map[string]string{"HOME": home, "LOCALAPPDATA": other}, filepath.Join(other, "dewpoint")},
		{"windows", map[string]string{"HOME": home}, ""},
	} {
		got, err := stateFolder(c.system, "dewpoint", func(name string) string { return c.env[name] })
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s, %v: %q, %v, want %q", c.system, c.env, got, err, c.want)
		}
	}
}
