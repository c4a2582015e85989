package profiles

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	// A profile says what runs; a recipe and the user's own settings do not.
	isProfile = regexp.MustCompile(`(?m)^run:`)
	// `machines.count`, and `limits.stall: 2h`; not `run.sh`, which is a file.
	namedKey = regexp.MustCompile("`((?:machines|environment|code|run|results|limits)\\.[a-z][a-z0-9_.]*)[`:]")
	aFile    = regexp.MustCompile(`\.(sh|py|ya?ml|json|go|md|toml|txt|csv)$`)
)

func pages(t *testing.T) map[string]string {
	t.Helper()
	found, err := filepath.Glob("../docs/*.md")
	if err != nil || len(found) < 10 {
		t.Fatalf("%d pages, %v", len(found), err)
	}
	texts := map[string]string{}
	for _, name := range append(found, "../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = strings.ReplaceAll(string(text), "\r", "")
	}
	return texts
}

// Who copies a profile from a page, or begins with an example, gets no error.
func TestEveryProfileOfTheDocsIsRead(t *testing.T) {
	read := 0
	for name, text := range pages(t) {
		for _, block := range yamlBlock.FindAllStringSubmatchIndex(text, -1) {
			profile := text[block[2]:block[3]]
			if !isProfile.MatchString(profile) {
				continue
			}
			read++
			profile = strings.ReplaceAll(profile, "env:WANDB_API_KEY", "env:DLWB_TEST_SECRET")
			if _, err := parse("dlwb.yaml", []byte(profile), shell); err != nil {
				t.Errorf("%s, the profile behind line %d: %v", name, 1+strings.Count(text[:block[0]], "\n"), err)
			}
		}
	}
	if read < 8 {
		t.Errorf("only %d profiles were found", read)
	}
	examples, err := filepath.Glob("../examples/*/dlwb.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("%d examples, %v", len(examples), err)
	}
	for _, name := range examples {
		if _, err := Load(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A key that was renamed must not stay in a page.
func TestTheDocsNameOnlyKeysThatThereAre(t *testing.T) {
	named := 0
	for name, text := range pages(t) {
		if filepath.Base(name) == "settings.md" { // of the user's own file, which has keys of its own
			continue
		}
		for _, m := range namedKey.FindAllStringSubmatch(text, -1) {
			key := strings.TrimRight(m[1], ".")
			if aFile.MatchString(key) {
				continue
			}
			named++
			if !slices.ContainsFunc(Fields, func(f *Field) bool { return f.Key == key || strings.HasPrefix(f.Key, key+".") }) {
				t.Errorf("%s names `%s`, which is no key of a profile", name, key)
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d keys were found", named)
	}
}
