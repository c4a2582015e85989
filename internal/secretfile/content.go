package secretfile

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/dlwb/dlwb/internal/pattern"
)

// Head is how much of a file ByContent and Mentions need at most.
const Head = 64 << 10

// text is what secrets of one kind look like. mark is what all of them contain,
// which is quicker to look for.
type text struct {
	mark, what string
	is         *pattern.Pattern
}

// whole are the forms of files that are a secret and nothing else.
var whole = []text{
	{"PRIVATE KEY", "a private key", pattern.New(`(?m)^\s*-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY( BLOCK)?-----`)},
	{"PuTTY-User-Key-File", "a key of ssh", pattern.New(`^PuTTY-User-Key-File-\d`)},
	{"AGE-SECRET-KEY-", "a key of age", pattern.New(`(?m)^AGE-SECRET-KEY-1`)},
	{`"private_key"`, "a key of a service account", pattern.New(`"private_key"\s*:\s*"-----BEGIN`)},
	{`"refresh_token"`, "a login", pattern.New(`"refresh_token"\s*:\s*"[^"]{16}`)},
	{`"SecretAccessKey"`, "credentials of AWS", pattern.New(`"SecretAccessKey"\s*:\s*"[^"]{16}`)},
	{"aws_secret_access_key", "credentials of AWS", pattern.New(`(?m)^\[[^\]\n]+\]\s*\n(.*\n){0,3}?aws_secret_access_key\s*=\s*\S`)},
	{"client-key-data", "credentials of Kubernetes", pattern.New(`(?m)^\s*(- )?client-key-data:\s*\S`)},
	{"kind:", "credentials of Kubernetes", pattern.New(`(?ms)^kind:\s*Config\s*$.*^\s+token:\s*\S|^\s+token:\s*\S.*^kind:\s*Config\s*$`)},
	{`"auths"`, "logins of registries", pattern.New(`"auth"\s*:\s*"[A-Za-z0-9+/=]{8}`)},
	{"oauth_token:", "a token of GitHub", pattern.New(`(?m)^\s+oauth_token:\s*\S{16}`)},
	{"_authToken", "a token of npm", pattern.New(`(?m)^//[^\n]*:_authToken\s*=\s*[^\s$]`)},
	{"npmAuthToken", "a token of npm", pattern.New(`(?m)^\s*npmAuthToken:\s*["']?[A-Za-z0-9_-]{16}`)},
	{"password", "logins", pattern.New(`(?m)^\s*machine\s+\S+\s+login\s+\S+\s+password\s+\S`)},
	{"PrivateKey", "a key of a network", pattern.New(`(?m)^PrivateKey\s*=\s*[A-Za-z0-9+/]{42,43}=`)},
}

// mentions are secrets that stand in a file beside other things.
var mentions = []text{
	{"PRIVATE KEY-----", "a private key", pattern.New(`-----BEGIN ([A-Z]+ )*PRIVATE KEY-----\s*[A-Za-z0-9+/=]{16}`)},
	{"aws_secret_access_key", "an AWS secret key", pattern.New(`aws_secret_access_key["']?\s*[=:]\s*["']?[A-Za-z0-9/+]{40}\b`)},
	{`"private_key_id"`, "a Google service account", pattern.New(`"type"\s*:\s*"service_account"`)},
}

// words are such secrets that are one word, with what it begins with. A search by the
// pattern alone would stop at every word of a file: it begins with ^, and is asked only
// where the word may begin.
var words = []text{
	{"AKIA", "an AWS access key", pattern.New(`^AKIA[A-Z0-9]{16}\b`)},
	{"ASIA", "an AWS access key", pattern.New(`^ASIA[A-Z0-9]{16}\b`)},
	{"gh", "a GitHub token", pattern.New(`^gh[pousr]_[A-Za-z0-9]{36}`)},
	{"github_pat_", "a GitHub token", pattern.New(`^github_pat_[A-Za-z0-9_]{60}`)},
	{"hf_", "a Hugging Face token", pattern.New(`^hf_[A-Za-z]{34}\b`)},
	{"xox", "a Slack token", pattern.New(`^xox[abprs]-[A-Za-z0-9-]{20}`)},
	{"sk-", "an API key", pattern.New(`^sk-(ant-|proj-)?[A-Za-z0-9_-]{40}`)},
}

// wordMost is more than what the pattern of a word looks at.
const wordMost = 128

// sources are the ends of names of programs and documents. A key in one is an
// example or part of a test more often than not, and the program does not run
// without the file.
var sources = map[string]bool{}

func init() {
	for _, ext := range strings.Fields(".py .pyi .pyx .ipynb .c .h .cc .cpp .hpp .cu .cuh .go .rs .java .kt .scala .js .jsx .ts .tsx .mjs .rb .php .pl " +
		".lua .jl .r .rmd .swift .m .cs .sh .bash .zsh .fish .ps1 .md .rst .tex .html .css .svg .xml .proto .cmake .diff .patch .csv .tsv .jsonl .parquet") {
		sources[ext] = true
	}
}

// ByContent says what a file is, by the beginning of what stands in it, where
// the file is a secret and nothing else; empty: none is known.
func ByContent(name string, head []byte) string {
	if sources[strings.ToLower(path.Ext(name))] || bytes.IndexByte(head, 0) >= 0 {
		return ""
	}
	return inWhole().find(head)
}

// Mentions says what secret seems to stand in a file, beside other things;
// empty: none is seen.
func Mentions(head []byte) string {
	if bytes.IndexByte(head, 0) >= 0 {
		return "" // no text
	}
	return inMentions().find(head)
}

// search is for texts and words in one pass over a file: a pass for each took as long
// as to read and hash it.
type search struct {
	texts []text         // the last ones are words
	words int            // the first of these
	begin [1 << 16]uint8 // by the two bytes with which a mark begins: which of at
	at    [][]int        // texts
}

var inWhole, inMentions = seek(whole, nil), seek(mentions, words)

func seek(texts, words []text) func() *search {
	return sync.OnceValue(func() *search {
		s := &search{texts: slices.Concat(texts, words), words: len(texts), at: [][]int{nil}}
		for i, t := range s.texts {
			which := &s.begin[pair(t.mark[0], t.mark[1])]
			if *which == 0 {
				*which, s.at = uint8(len(s.at)), append(s.at, nil)
			}
			s.at[*which] = append(s.at[*which], i)
		}
		return s
	})
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// find says what the first of the texts is that stands in a file; empty: none does.
func (s *search) find(head []byte) string {
	seen := make([]bool, len(s.texts))
	var two uint16
	for i, b := range head {
		if two = two<<8 | uint16(b); s.begin[two] > 0 && i > 0 {
			for _, n := range s.at[s.begin[two]] {
				seen[n] = seen[n] || s.stands(n, head, i-1)
			}
		}
	}
	for i, t := range s.texts {
		if seen[i] && (i >= s.words || t.is.Match(head)) {
			return t.what
		}
	}
	return ""
}

// stands reports whether the mark of a text stands at a place, or the word does.
func (s *search) stands(n int, head []byte, at int) bool {
	t := &s.texts[n]
	if n < s.words {
		return bytes.HasPrefix(head[at:], []byte(t.mark))
	}
	return (at == 0 || !inWord(head[at-1])) && bytes.HasPrefix(head[at:], []byte(t.mark)) && t.is.Match(head[at:min(at+wordMost, len(head))])
}

// inWord reports whether \b is not between this and a letter.
func inWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

var block = pattern.New(`-----BEGIN ([A-Z0-9 ]+)-----`)

// certificates are the kinds of blocks that everybody may see.
var certificates = map[string]bool{"CERTIFICATE": true, "TRUSTED CERTIFICATE": true, "X509 CERTIFICATE": true, "PUBLIC KEY": true,
	"RSA PUBLIC KEY": true, "X509 CRL": true, "CERTIFICATE REQUEST": true, "NEW CERTIFICATE REQUEST": true, "DH PARAMETERS": true, "EC PARAMETERS": true,
	"PGP PUBLIC KEY BLOCK": true}

// MayBePublic reports whether a file with this name is a secret or not
// according to its content alone, all of it.
func MayBePublic(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".pem" || ext == ".key"
}

// IsPublic reports whether a file holds certificates and public keys, and
// nothing else in such a form.
func IsPublic(content []byte) bool {
	blocks := block.FindAllSubmatch(content, -1)
	for _, b := range blocks {
		if !certificates[string(b[1])] {
			return false
		}
	}
	return len(blocks) > 0 && !bytes.Contains(content, []byte("PRIVATE KEY"))
}
