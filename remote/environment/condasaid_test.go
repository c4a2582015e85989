package environment

import (
	"strings"
	"testing"
)

// What micromamba 2.8.1 printed for channels and files that are wrong, the lines that
// tell. Each is explained by its own cause.
func TestWhatMicromambaSaysIsExplained(t *testing.T) {
	p := preparer{spec: Spec{Kind: Conda, File: "env.yml"}}
	unsolved := "error    libmamba Could not solve for environment specs\n    The following package could not be installed\n"
	end := "\ncritical libmamba Could not solve for environment specs"
	for said, want := range map[string]string{
		unsolved + "    └─ dlwbnowhere =7 * does not exist (perhaps a typo or a missing channel)." + end:                                                                                                                                                                                                                                     "there is no dlwbnowhere =7 in the channels of env.yml",
		unsolved + "    └─ dlwbthree =* * is not installable because it requires\n       └─ dlwbtwo >=7 *, which does not exist (perhaps a missing channel)." + end:                                                                                                                                                                          "there is no dlwbtwo >=7 in the channels of env.yml",
		unsolved + "    ├─ dlwbnowhere =7 * does not exist (perhaps a typo or a missing channel);\n    └─ otherthing =* * does not exist (perhaps a typo or a missing channel)." + end:                                                                                                                                                       "there is no dlwbnowhere =7 in the channels of env.yml",
		unsolved + "    └─ dlwbcuda =* * is not installable because it requires\n       └─ __cuda >=12 *, which is missing on the system." + end:                                                                                                                                                                                             "needs __cuda >=12, and the node has none",
		"error    libmamba Could not solve for environment specs\n    The following packages are incompatible\n    ├─ dlwbfour =* * is installable and it requires\n    │  └─ dlwbone <1 *, which can be installed;\n    └─ dlwbone =1.0 * is not installable because it conflicts with any installable versions previously reported." + end: "the packages in env.yml exclude each other",
		"    Download error (7) Couldn't connect to server [http://127.0.0.1:9/c/noarch/repodata.json]\n    Subdir http://127.0.0.1:9/c/noarch not loaded!":                                                                                                                                                                                  "can't be reached from the node",
		"    Download error (60) SSL peer certificate or SSH remote key was not OK [https://127.0.0.1:8766/c/noarch/repodata.json]\n    SSL certificate problem: self-signed certificate":                                                                                                                                                    "a certificate that the node does not trust",
		"critical libmamba Multiple errors occurred:\n    Transfer finalized, status: 404 [http://127.0.0.1:8765/nochannel/noarch/repodata.json] 335 bytes":                                                                                                                                                                                  "does not answer as one: 404 [http://127.0.0.1:8765/nochannel/noarch/repodata.json]",
		"    Could not load repodata.json for http://127.0.0.1:8765/html/noarch after retry.Please check repodata source. Exiting.":                                                                                                                                                                                                          "does not answer as one: http://127.0.0.1:8765/html/noarch",
		"dlwbbad-1.0-0.tar.bz2 tarball has incorrect size\ncritical libmamba Found incorrect downloads. Aborting":                                                                                                                                                                                                                            "came damaged",
		"error    libmamba Could not read 'channels' as vector of strings from '/x/environment.yml'\ncritical libmamba yaml-cpp: error at line 1, column 11: bad conversion":                                                                                                                                                                 "no environment file that conda understands",
		"error    libmamba YAML error in spec file '/x/environment.yml'\ncritical libmamba yaml-cpp: error at line 2, column 2: illegal block entry":                                                                                                                                                                                         "no environment file that conda understands",
		"ERROR: No matching distribution found for dlwb-no-such-package==1\ncritical libmamba pip failed to install packages":                                                                                                                                                                                                                "there is no dlwb-no-such-package==1",
		"LibMambaUnsatisfiableError: Encountered problems while solving:\n  - nothing provides __cuda >=12 needed by pytorch-2.9-cuda":                                                                                                                                                                                                       "needs __cuda >=12, and the node has none",
	} {
		if f := p.condaFailure(nil, 1, strings.Split(said, "\n")); !strings.Contains(f.Why, want) || f.Next == "" {
			t.Errorf("%q\nis explained as %q", said, f.Why)
		}
	}
}
