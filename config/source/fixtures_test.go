package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type badFixture struct {
	name string
	want []string // every problem, in order
}

func fixtureEnv() []string {
	return []string{"TEAM_A_KEY=abc", "KEY=k1", "KEY_2=k2", "OPENHANDS_KEY=oh",
		"ENCRYPTION_KEY=ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"}
}

// TestBadFixtures loads each file of testdata that is named for its defect, and checks for exactly its problems.
func TestBadFixtures(t *testing.T) {
	var named []string
	for _, fixture := range badFixtures() {
		named = append(named, filepath.Join("testdata", fixture.name))
		t.Run(fixture.name, func(t *testing.T) {
			cfg, err := Load(Input{File: filepath.Join("testdata", fixture.name), Env: fixtureEnv()})
			if err == nil {
				t.Fatalf("it is loaded: %+v", cfg)
			}
			var got []string
			for _, problem := range problemsOf(err) {
				got = append(got, problem.Error())
			}
			if !slices.Equal(got, fixture.want) {
				t.Errorf("problems\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(fixture.want, "\n\t"))
			}
			if strings.Contains(err.Error(), "verysecret") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
	files, err := filepath.Glob("testdata/bad.*")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(named)
	if !slices.Equal(files, named) {
		t.Errorf("the table and testdata differ:\n%v\n%v", named, files)
	}
}

func TestGoodFixturesLoad(t *testing.T) {
	files, err := filepath.Glob("testdata/good.*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		if _, err := Load(Input{File: file, Env: fixtureEnv()}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("# much\n", maxFile/7+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing.yaml")
	for file, want := range map[string]string{
		missing: missing + ": cannot be read (no such file or directory): check its name and permissions",
		dir:     dir + ": is a folder: name a file, or move its files up",
		large:   large + ": is larger than 1MiB: shorten it, or name the right file",
	} {
		_, err := Load(Input{File: file})
		if problems := problemsOf(err); len(problems) != 1 || problems[0].Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func badFixtures() []badFixture {
	return slices.Concat(badSyntax(), badValues(), badPerModel())
}
