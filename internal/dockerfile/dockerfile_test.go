package dockerfile

import (
	"strings"
	"testing"
)

func TestWhatADockerfileIsMadeOf(t *testing.T) {
	for text, want := range map[string]string{
		"FROM x\nRUN y\n": "",
		"FROM x\nCOPY a b/ /to\ncopy [\"c d\", \"/e\"]\nADD --chown=1:1 f* .\n": "./a ./b ./c d ./f*",
		"FROM x AS y\nCOPY --from=y /a /b\nADD https://a/b.tar /c\n":            "",
		"COPY requirements.txt \\\n # why\n setup.py /\n":                       "./requirements.txt ./setup.py",
		"ARG D\nCOPY $D /x\n": ".",
		"COPY . /app\n":       "./",
		"COPY src/**/*.py /x": ".",
		"RUN --mount=type=bind,source=a,target=/a make\n":                               ".",
		"RUN --mount=target=/a make\n":                                                  ".",
		"RUN --mount=type=bind,from=x,target=/a --mount=type=bind,target=/b make\n":     ".",
		"RUN --mount=type=cache,target=/c --mount=type=bind,from=x,target=/a make -j\n": "",
		"COPY ../../secret /x\n":                                                        "./secret",
		"COPY <<EOF /x\nhello\nEOF\n":                                                   "",
	} {
		if got := strings.Join(Sources(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestWhatADockerfileBeginsFrom(t *testing.T) {
	text := "ARG V=1\nFROM --platform=linux/amd64 a/b:1 AS build\nFROM build AS next\nFROM c:$V\nFROM scratch\nCOPY --from=d/e:2 /x /y\nCOPY --from=0 /x /y\nCOPY --from=Next /x /\nFROM a/b:1\n"
	if got := strings.Join(Bases(text), " "); got != "a/b:1 d/e:2" {
		t.Errorf("got %q", got)
	}
}

func TestAFileIsAmongSourcesByItselfOrByItsDirectory(t *testing.T) {
	sources := []string{"./requirements*.txt", "./src", "./[a", "./conf/x.y"}
	for file, want := range map[string]bool{"requirements-gpu.txt": true, "src/a/b.py": true, "srcs/a.py": false, "train.py": false, "conf/x.y": true, "conf/x.z": false} {
		if got := Among(sources[:2], file) || Among(sources[3:], file); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
	if !Among(sources[2:3], "any") || !Among([]string{"."}, "any") || !Among([]string{"./"}, "a/b") || Among(nil, "any") {
		t.Error("what can't be told is in, and without sources nothing is")
	}
}

func TestWhatDockerAndPodmanMean(t *testing.T) {
	for text, want := range map[string]string{
		"write /x: no space left on device":                      "this machine's disk is full",
		"pull access denied for x/y, repository does not exist":  "X is not there for this machine",
		"Get https://registry: no such host":                     "the registry of X can't be reached",
		"toomanyrequests: You have reached your pull rate limit": "gives this machine no more",
		"COPY failed: file not found in build context":           "copies a file that is not in the code",
		`copier: stat: "/nowhere": no such file or directory`:    "/nowhere",
		`short-name "x" did not resolve to an alias`:             "does not say its registry",
		"exec /bin/sh: exec format error":                        "another kind of processor",
		"failed to authorize: no basic auth credentials":         "it is private",
	} {
		if why, next := Explain([]string{"Step 1/2", text}, "X", Here); !strings.Contains(why, want) || next == "" {
			t.Errorf("%s: %q, %q", text, why, next)
		}
	}
	if why, next := Explain([]string{"make: *** [all] Error 1"}, "X", Node); why != "" || next != "" {
		t.Errorf("got %q, %q", why, next)
	}
}
