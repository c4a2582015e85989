package secretfile

import (
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEveryRuleIsAPattern(t *testing.T) {
	for _, r := range rules {
		if _, err := path.Match(r.form, "x"); err != nil || r.form != strings.ToLower(r.form) || r.what == "" {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestWhatPeopleKeepSecretIsKnownByItsName(t *testing.T) {
	for _, file := range strings.Fields(`.env .env.local a/.env.production prod.env .envrc .ENV .ssh/id_ed25519 .ssh/config id_rsa id_ecdsa_sk old/id_dsa.bak
		.aws/credentials .aws/config .aws/sso/cache/1234.json user_accessKeys.csv .azure/accessTokens.json .config/gcloud/credentials.db
		application_default_credentials.json client_secret_12.json my-firebase-adminsdk-x1.json .kube/config .kube/cache/x kubeconfig prod.kubeconfig
		.docker/config.json .config/containers/auth.json .config/gh/hosts.yml .npmrc sub/.npmrc .pypirc .netrc _netrc .git-credentials .config/git/credentials
		.vault-token .cache/huggingface/token .huggingface/token .cache/huggingface/stored_tokens .kaggle/kaggle.json kaggle.json .gnupg/secring.gpg
		prod.tfvars x.auto.tfvars.json terraform.tfstate terraform.tfstate.backup .terraformrc .terraform.d/credentials.tfrc.json cert.p12 cert.PFX a.jks
		release.keystore pass.kdbx .htpasswd .pgpass .my.cnf .s3cfg .boto .config/rclone/rclone.conf .config/sops/age/keys.txt cookies.sqlite
		.streamlit/secrets.toml .Renviron .databrickscfg .config/ngrok/ngrok.yml .modal.toml .lightning/credentials.json clearml.conf .comet.config
		.bash_history .python_history credentials credentials.json secrets.yaml .secrets .cargo/credentials.toml .m2/settings.xml ngrok.yml
		.password-store/a.gpg .erlang.cookie krb5cc_1000 x.keytab service_account.json service-account-prod.json local.settings.json .token k.pem k.key`) {
		if ByName(file) == "" || ByName("/home/ada/x/"+file) == "" {
			t.Errorf("%s passes", file)
		}
	}
}

func TestWhatIsNoSecretPasses(t *testing.T) {
	for _, file := range strings.Fields(`.env.example .env.sample .env.template example.env .env.dist id_ed25519.pub .ssh/id_rsa.pub .ssh/known_hosts tokenizer.json
		tokenizer_config.json special_tokens_map.json secrets.py credentials.py src/secrets/store.py lib/ssh/keys.py src/gcloud/storage.py aws/config.py kube/config.yaml
		.env/bin/activate .env/lib/python3.12/site-packages/x.py environment.yml train.py README.md data/tokens.bin token.py config.json auth.py azure/blob.py
		keys.txt model.safetensors docker/config.json wandb/settings .github/workflows/ci.yml .vscode/settings.json conda-env.yml terraform.tfvars.example
		main.tf passwords.py vault.py .docker/Dockerfile monkey.txt keyboard.json`) {
		if what := ByName("/home/ada/project/" + file); what != "" {
			t.Errorf("%s is held back: %s", file, what)
		}
	}
}

// sample is what such files look like, put together so that this file holds no
// key itself.
func sample(parts ...string) []byte { return []byte(strings.Join(parts, "")) }

func TestSecretsAreKnownByWhatStandsInThem(t *testing.T) {
	for name, text := range map[string][]byte{
		"deploy":       sample("-----BEGIN OPENSSH ", "PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n"),
		"bag.txt":      sample("Bag Attributes\n    localKeyID: 01\n-----BEGIN ENCRYPTED ", "PRIVATE KEY-----\nabc\n"),
		"pgp.asc":      sample("-----BEGIN PGP ", "PRIVATE KEY BLOCK-----\n\nabc\n"),
		"putty":        sample("PuTTY-User-Key-File-3: ssh-ed25519\n"),
		"keys.txt":     sample("# created: 2026\nAGE-SECRET-", "KEY-1QQQ\n"),
		"robot.json":   sample(`{"type": "service_account", "private_key": "-----BEGIN `, `PRIVATE KEY-----\nMII"}`),
		"adc.json":     sample(`{"client_id": "x", "refresh_token": "1//0abcdefghijklmnopqrst"}`),
		"sts.json":     sample(`{"Credentials": {"SecretAccessKey": "abcdefghijklmnopqrstuvwxyz"}}`),
		"aws.ini":      sample("[default]\naws_access_key_id = x\naws_secret_access_key = abcdefghijklmnop\n"),
		"cluster.yaml": sample("apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user:\n    client-key-data: LS0t\n"),
		"token.yaml":   sample("apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user:\n    token: abc\n"),
		"reg.json":     sample(`{"auths": {"ghcr.io": {"auth": "dXNlcjpwYXNz"}}}`),
		"h.yml":        sample("github.com:\n    oauth_token: gho_abcdefghijklmnop\n"),
		"rc":           sample("//registry.npmjs.org/:_authToken=npm_abc\n"),
		"logins":       sample("machine api.wandb.ai\n  login user\n  password 0123\nmachine a login b password c\n"),
		"wg0.conf":     sample("[Interface]\nPrivateKey = ", strings.Repeat("a", 43), "=\n"),
	} {
		if ByContent(name, text) == "" {
			t.Errorf("%s passes", name)
		}
	}
	key := sample("-----BEGIN RSA ", "PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n")
	for name, text := range map[string][]byte{
		"test_jwt.py":     key,
		"README.md":       key,
		"cert":            sample("-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"),
		"config.yaml":     sample("token: <bos>\nkind: transformer\n"),
		"tokenizer.json":  sample(`{"added_tokens": [{"id": 0, "content": "<unk>"}]}`),
		".npmrc.ci":       sample("//registry.npmjs.org/:_authToken=${NPM_TOKEN}\n"),
		"model.bin":       append([]byte{0}, key...),
		"deployment.yaml": sample("kind: Deployment\nspec:\n  token: x\n"),
	} {
		if what := ByContent(name, text); what != "" {
			t.Errorf("%s is held back: %s", name, what)
		}
	}
	if Mentions(key) == "" || Mentions([]byte("# AKIA is no key, nor is sk-learn\n")) != "" {
		t.Error("what a file mentions")
	}
}

func TestCertificatesArePublicUnlessTheirKeyIsWithThem(t *testing.T) {
	cert := "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
	key := "-----BEGIN " + "PRIVATE KEY-----\nMII\n"
	if !IsPublic([]byte("# a comment\n"+cert+cert)) || !IsPublic([]byte("-----BEGIN PUBLIC KEY-----\nMII\n")) {
		t.Error("a certificate is held back")
	}
	for _, text := range []string{cert + key, key, "", "nothing of the kind", cert + "-----BEGIN SOMETHING ELSE-----\n"} {
		if IsPublic([]byte(text)) {
			t.Errorf("%q is public", text)
		}
	}
	if !MayBePublic("a/ca.PEM") || MayBePublic("id_rsa") {
		t.Error("which names")
	}
}

func TestATokenIsSeenWhereAWordBegins(t *testing.T) {
	letters := func(n int) string { return strings.Repeat("aB", n/2) }
	for kind, token := range map[string]string{
		"an AWS access key": "AKI" + "A" + strings.Repeat("Q7", 8), "a GitHub token": "gh" + "p_" + letters(36),
		"a Hugging Face token": "hf" + "_" + letters(34), "a Slack token": "xo" + "xb-" + letters(20), "an API key": "sk" + "-" + letters(40),
	} {
		far := strings.Repeat("the weight of high-light and gh_, hf_x, sk-learn, AKIA, xoxo\n", 900)
		for _, text := range []string{token, "key=" + token, `"` + token + `"`, "\xff" + token, far + token + "\n"} {
			if got := Mentions([]byte(text)); got != kind {
				t.Errorf("%.40q… is %q, not %q", text, got, kind)
			}
		}
		for _, text := range []string{"x" + token, "_" + token, "7" + token, token[:len(token)-1], far} {
			if got := Mentions([]byte(text)); got != "" {
				t.Errorf("%.40q… is %q", text, got)
			}
		}
	}
	// The mark of the others is not in it.
	if Mentions([]byte("github_"+"pat_"+letters(60))) == "" || Mentions([]byte("hf"+"_"+letters(36))) != "" {
		t.Error("the lengths of tokens")
	}
}

// Text without a secret is what nearly all files are: each of them is looked through.
func BenchmarkMentions(b *testing.B) {
	text := []byte(strings.Repeat("def forward(self, x): # weight, height, high, tasks, hf_hub, sk-learn\n\treturn self.light(x)\n", 700))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if Mentions(text) != "" {
			b.Fatal("there is nothing in it")
		}
	}
}

// One pass finds what a look for each kind by itself finds.
func TestOnePassSeesWhatManySee(t *testing.T) {
	letters := strings.Repeat("aB7", 20)
	pieces := []string{"\n", " ", "_", "a", "Z9", "=", ": ", `"`, letters, strings.ToUpper(letters), "p_", "b-", "-----BEGIN ", "service_account", `"type"`}
	for _, t := range slices.Concat(whole, mentions, words) {
		pieces = append(pieces, t.mark, t.mark[:len(t.mark)-1])
	}
	simple := func(texts, words []text, head string) string {
		for _, t := range texts {
			if strings.Contains(head, t.mark) && t.is.MatchString(head) {
				return t.what
			}
		}
		for _, w := range words {
			for at := range head {
				if (at == 0 || !inWord(head[at-1])) && strings.HasPrefix(head[at:], w.mark) && w.is.MatchString(head[at:]) {
					return w.what
				}
			}
		}
		return ""
	}
	rapid.Check(t, func(t *rapid.T) {
		head := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
		if got, want := Mentions([]byte(head)), simple(mentions, words, head); got != want {
			t.Errorf("%q mentions %q, not %q", head, got, want)
		}
		if got, want := ByContent("a.txt", []byte(head)), simple(whole, nil, head); got != want {
			t.Errorf("%q is %q, not %q", head, got, want)
		}
	})
}
