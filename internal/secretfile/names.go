// Package secretfile knows what files look like that hold passwords, keys and
// tokens: by the names that programs give them, and by what stands in them. It
// reads nothing itself.
package secretfile

import (
	"path"
	"strings"
	"sync"
)

// Version changes whenever the rules do: what was found clean by other rules
// has to be looked at again.
const Version = 2

// rule is a form of name, in small letters. Without a slash it is that of a
// file; with slashes, of the end of its path; with one at the end, of a
// directory anywhere on its way, all of whose files it holds for.
type rule struct{ form, what string }

// rules are the names. The first that matches says what the file is.
var rules = []rule{
	{".env", "variables of a program"}, {".env.*", "variables of a program"}, {".env-*", "variables of a program"},
	{".env_*", "variables of a program"}, {"*.env", "variables of a program"}, {".envrc", "variables of a program"},
	{".ssh/", "keys of ssh"}, {"id_rsa*", "a key of ssh"}, {"id_dsa*", "a key of ssh"}, {"id_ecdsa*", "a key of ssh"},
	{"id_ed25519*", "a key of ssh"}, {"id_xmss*", "a key of ssh"}, {"ssh_host_*_key", "a host key of ssh"}, {"*.ppk", "a key of ssh"},

	{".aws/", "credentials of AWS"}, {"*accesskeys.csv", "credentials of AWS"}, {"rootkey.csv", "credentials of AWS"},
	{".azure/", "credentials of Azure"}, {"local.settings.json", "settings of Azure Functions"}, {"*.publishsettings", "credentials of Azure"},
	{".config/gcloud/", "credentials of Google Cloud"}, {"gcloud/credentials.db", "credentials of Google Cloud"}, {"gcloud/access_tokens.db", "credentials of Google Cloud"},
	{"gcloud/legacy_credentials/", "credentials of Google Cloud"}, {".gcloud/", "credentials of Google Cloud"},
	{"application_default_credentials.json", "credentials of Google Cloud"}, {"client_secret*.json", "credentials of Google"},
	{"service?account*.json", "credentials of Google Cloud"}, {"*-firebase-adminsdk-*.json", "credentials of Google Cloud"},
	{"*gcp-key*.json", "credentials of Google Cloud"}, {"token.pickle", "credentials of Google"}, {".boto", "credentials of Google Cloud"},
	{".oci/", "credentials of Oracle Cloud"}, {".config/doctl/", "credentials of DigitalOcean"}, {".bluemix/", "credentials of IBM Cloud"},
	{".aliyun/", "credentials of Alibaba Cloud"}, {".config/hcloud/", "credentials of Hetzner"}, {".config/linode-cli", "credentials of Linode"},
	{".config/scw/", "credentials of Scaleway"}, {".fly/", "credentials of Fly.io"}, {".config/vercel/", "credentials of Vercel"},
	{".netlify/config.json", "credentials of Netlify"}, {".wrangler/config/", "credentials of Cloudflare"}, {".cloudflared/", "credentials of Cloudflare"},
	{".lambda_cloud/", "credentials of Lambda"}, {".lambda/", "credentials of Lambda"}, {".runpod/", "credentials of RunPod"},
	{".modal.toml", "credentials of Modal"}, {".vast_api_key", "credentials of Vast.ai"}, {".lightning/credentials.json", "credentials of Lightning"},
	{".sky/", "credentials of SkyPilot"}, {".databrickscfg", "credentials of Databricks"}, {".databricks/token-cache.json", "credentials of Databricks"},
	{".snowflake/", "credentials of Snowflake"}, {".snowsql/config", "credentials of Snowflake"},

	{".kube/", "credentials of Kubernetes"}, {"kubeconfig", "credentials of Kubernetes"}, {"kubeconfig.*", "credentials of Kubernetes"},
	{"*.kubeconfig", "credentials of Kubernetes"}, {".docker/config.json", "logins of registries"}, {".dockercfg", "logins of registries"},
	{".dockerconfigjson", "logins of registries"}, {"containers/auth.json", "logins of registries"}, {".config/helm/registry/", "logins of registries"},

	{"gh/hosts.yml", "a token of GitHub"}, {".config/hub", "a token of GitHub"}, {".config/github-copilot/", "a token of GitHub"},
	{".config/glab-cli/", "a token of GitLab"}, {"glab-cli/config.yml", "a token of GitLab"}, {".git-credentials", "logins of git"},
	{"git/credentials", "logins of git"}, {".netrc", "logins"}, {"_netrc", "logins"}, {".authinfo", "logins"}, {".authinfo.gpg", "logins"},

	{".npmrc", "a token of npm"}, {".pypirc", "a token of PyPI"}, {".cargo/credentials", "a token of crates.io"},
	{".cargo/credentials.toml", "a token of crates.io"}, {".gem/credentials", "a token of RubyGems"}, {".m2/settings.xml", "logins of Maven"},
	{".m2/settings-security.xml", "logins of Maven"}, {".composer/auth.json", "logins of Composer"},
	{".conda/.condarc", "logins of conda"}, {".continuum/", "a token of conda"}, {".config/pypoetry/auth.toml", "logins of Poetry"},
	{".sentryclirc", "a token of Sentry"},

	{"huggingface/token", "a token of Hugging Face"}, {"huggingface/stored_tokens", "a token of Hugging Face"}, {".huggingface/", "a token of Hugging Face"},
	{".hf_token", "a token of Hugging Face"}, {"hf_token", "a token of Hugging Face"}, {"hf_token.txt", "a token of Hugging Face"},
	{"kaggle.json", "a token of Kaggle"}, {".kaggle/", "a token of Kaggle"}, {".comet.config", "a token of Comet"}, {"clearml.conf", "keys of ClearML"},
	{".clearml.conf", "keys of ClearML"}, {"trains.conf", "keys of ClearML"}, {".neptune/", "a token of Neptune"}, {".wandb_api_key", "a key of W&B"},
	{".mlflow/credentials", "logins of MLflow"}, {".openai", "a key of OpenAI"}, {".openai/", "a key of OpenAI"}, {".anthropic/", "a key of Anthropic"},
	{".config/ngc/", "a key of NGC"}, {".ngc/", "a key of NGC"}, {".jupyter/jupyter_*_config.json", "a password of Jupyter"},
	{"jupyter_cookie_secret", "a secret of Jupyter"}, {".streamlit/secrets.toml", "secrets of Streamlit"}, {".renviron", "variables of R"},

	{"*.tfvars", "variables of Terraform"}, {"*.tfvars.json", "variables of Terraform"}, {"*.tfstate", "state of Terraform"}, {"*.tfstate.*", "state of Terraform"},
	{".terraformrc", "credentials of Terraform"}, {"terraform.rc", "credentials of Terraform"}, {".terraform.d/", "credentials of Terraform"},
	{".pulumi/", "credentials of Pulumi"}, {".vault-token", "a token of Vault"}, {".vault_pass*", "a password of Ansible"}, {"vault_pass*", "a password of Ansible"},
	{".vault-pass*", "a password of Ansible"}, {"vault-password*", "a password of Ansible"}, {".ansible/", "secrets of Ansible"},
	{".config/sops/", "keys of age"}, {"*.agekey", "a key of age"}, {".age/", "keys of age"}, {"age.key", "a key of age"},

	{"*.p12", "a key store"}, {"*.pfx", "a key store"}, {"*.jks", "a key store"}, {"*.jceks", "a key store"}, {"*.keystore", "a key store"},
	{"*.bks", "a key store"}, {"*.kdbx", "a store of passwords"}, {"*.kdb", "a store of passwords"}, {"*.keychain", "a store of passwords"},
	{"*.keychain-db", "a store of passwords"}, {"*.agilekeychain/", "a store of passwords"}, {"*.opvault/", "a store of passwords"},
	{".password-store/", "a store of passwords"}, {"*.keyring", "a store of passwords"}, {"*.kwl", "a store of passwords"},
	{".config/op/", "a store of passwords"}, {"bitwarden cli/", "a store of passwords"},
	{".gnupg/", "keys of GnuPG"}, {"secring.*", "keys of GnuPG"}, {"*.ovpn", "a key of a network"}, {"wireguard/*.conf", "keys of a network"},
	{"*.pem", "a private key"}, {"*.key", "a private key"}, {"*.pkcs8", "a private key"}, {"*.pkcs12", "a key store"},

	{".htpasswd", "passwords"}, {".htdigest", "passwords"}, {".pgpass", "passwords of PostgreSQL"}, {"pgpass.conf", "passwords of PostgreSQL"},
	{".pg_service.conf", "passwords of PostgreSQL"}, {".my.cnf", "passwords of MySQL"}, {".mylogin.cnf", "passwords of MySQL"}, {".dbt/", "passwords of databases"},
	{".s3cfg", "keys of S3"}, {".passwd-s3fs", "keys of S3"}, {".s3ql/", "keys of S3"}, {".mc/config.json", "keys of S3"}, {"rclone.conf", "logins of rclone"},
	{".smbcredentials", "logins of a file share"}, {".cifs*", "logins of a file share"}, {"ngrok.yml", "a token of ngrok"}, {".ngrok2/", "a token of ngrok"},
	{".config/tailscale/", "a key of Tailscale"}, {".erlang.cookie", "a secret of Erlang"}, {".msmtprc", "a password of mail"}, {".fetchmailrc", "a password of mail"},
	{".mutt/", "passwords of mail"}, {".weechat/", "passwords"}, {".irssi/", "passwords"}, {"cookies.txt", "cookies of a browser"},
	{"cookies.sqlite", "cookies of a browser"}, {"cookies.json", "cookies of a browser"}, {"cookies", "cookies of a browser"},
	{"logins.json", "passwords of a browser"}, {"key4.db", "passwords of a browser"}, {"login data", "passwords of a browser"}, {".mozilla/", "what a browser keeps"},
	{".*_history", "what was typed"}, {".lesshst", "what was typed"}, {".node_repl_history", "what was typed"},
	{"etc/shadow", "passwords"}, {".config/dlwb/", "your settings of dlwb"}, {"*.keytab", "a key of Kerberos"}, {"krb5cc_*", "a ticket of Kerberos"},

	{"credentials", "credentials"}, {".credentials", "credentials"}, {".credentials/", "credentials"}, {"credentials.json", "credentials"},
	{"credentials.toml", "credentials"}, {"credentials.y*ml", "credentials"}, {"credentials.ini", "credentials"}, {"credentials.csv", "credentials"},
	{"credentials.xml", "credentials"}, {"credentials.txt", "credentials"}, {"credentials.db", "credentials"}, {"*_credentials.json", "credentials"},
	{"*-credentials.json", "credentials"}, {".secrets", "secrets"}, {".secret", "a secret"}, {".secrets.*", "secrets"}, {"secrets.y*ml", "secrets"},
	{"secrets.toml", "secrets"}, {"secrets.json", "secrets"}, {"secrets.ini", "secrets"}, {"secrets.txt", "secrets"}, {"secrets.properties", "secrets"},
	{"secret.y*ml", "a secret"}, {"secret.json", "a secret"}, {"secret.toml", "a secret"}, {"secret.txt", "a secret"}, {".token", "a token"},
	{".api_key", "a key"}, {".apikey", "a key"}, {"api_key.txt", "a key"}, {"apikey.txt", "a key"}, {"passwords.txt", "passwords"}, {"password.txt", "a password"},
	{".passwords", "passwords"}, {".password", "a password"},
}

// shown are words in a name that say it was made to be shown.
var shown = []string{"example", "examples", "sample", "template", "tmpl", "dist", "defaults", "pub"}

// public are files that lie among secrets and are none.
var public = []string{"known_hosts", "known_hosts.old", "authorized_keys"}

// ByName says what a file's path tells that it holds; empty: nothing. The path
// has slashes; the more of it is given, the more is known.
func ByName(file string) string {
	file = strings.ToLower(file)
	base := path.Base(file)
	if forShow(base) {
		return ""
	}
	if at := byRules().first("/" + file); at < len(rules) {
		return rules[at].what
	}
	return ""
}

// forShow reports whether a name is of what may be seen.
func forShow(base string) bool {
	for _, word := range strings.FieldsFunc(base, func(r rune) bool { return r == '.' || r == '-' || r == '_' }) {
		for _, s := range shown {
			if word == s && !strings.HasSuffix(base, ".key") && !strings.HasSuffix(base, ".pem") {
				return true
			}
		}
	}
	for _, p := range public {
		if base == p {
			return true
		}
	}
	return false
}

// table has the rules so that thousands of files are soon held against them.
// Rules go by their number: the first that matches counts.
type table struct {
	files, dirs         map[string]int // those without wildcards, by their form
	wildFiles, wildDirs []form
	most                int // parts of a path that a rule names
}

// form is a rule with wildcards.
type form struct {
	number, parts int
	text          string
	before, after string // what stands around the wildcards
}

var byRules = sync.OnceValue(func() *table {
	t := &table{files: map[string]int{}, dirs: map[string]int{}}
	for i, r := range rules {
		text, dir := strings.CutSuffix(r.form, "/")
		exact, wild := t.files, &t.wildFiles
		if dir {
			exact, wild = t.dirs, &t.wildDirs
		}
		parts := strings.Count(text, "/") + 1
		t.most = max(t.most, parts)
		if at := strings.IndexAny(text, `*?[\`); at >= 0 {
			after := text[strings.LastIndexAny(text, `*?]`)+1:]
			*wild = append(*wild, form{number: i, parts: parts, text: text, before: text[:at], after: after})
		} else if _, double := exact[text]; !double {
			exact[text] = i
		}
	}
	return t
})

// first is the number of the first rule that matches a path with a slash in
// front of it; len(rules): none does.
func (t *table) first(file string) int {
	first := t.among(file, t.files, t.wildFiles, len(rules))
	for at, b := range file {
		if b == '/' && at > 0 {
			first = t.among(file[:at], t.dirs, t.wildDirs, first)
		}
	}
	return first
}

// among is the first rule before a number that matches the end of a path, else
// that number.
func (t *table) among(file string, exact map[string]int, wild []form, first int) int {
	for n := 1; n <= t.most; n++ {
		if at, ok := exact[lastParts(file, n)]; ok {
			first = min(first, at)
		}
	}
	base := lastParts(file, 1)
	for i := range wild {
		f, name := &wild[i], base
		if f.parts > 1 {
			name = lastParts(file, f.parts)
		}
		if f.number < first && f.is(name) {
			first = f.number
		}
	}
	return first
}

// lastParts is the end of a path; empty: it is shorter.
func lastParts(file string, n int) string {
	at := len(file)
	for ; n > 0; n-- {
		if at = strings.LastIndexByte(file[:at], '/'); at < 0 {
			return ""
		}
	}
	return file[at+1:]
}

func (f *form) is(name string) bool {
	if !strings.HasPrefix(name, f.before) || !strings.HasSuffix(name, f.after) {
		return false
	}
	ok, err := path.Match(f.text, name)
	return ok && err == nil
}
