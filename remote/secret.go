package remote

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
)

// secretHead is how much of a file is looked through for secrets.
const secretHead = 64 << 10

// secretTexts are what keys and passwords of well-known makers look like. mark
// is what all of one kind contain, which is quicker to look for.
var secretTexts = []struct {
	mark, what string
	is         *regexp.Regexp
}{
	{"PRIVATE KEY-----", "a private key", regexp.MustCompile(`-----BEGIN ([A-Z]+ )*PRIVATE KEY-----\s*[A-Za-z0-9+/=]{16}`)},
	{"AKIA", "an AWS access key", regexp.MustCompile(`\bAKIA[A-Z0-9]{16}\b`)},
	{"ASIA", "an AWS access key", regexp.MustCompile(`\bASIA[A-Z0-9]{16}\b`)},
	{"aws_secret_access_key", "an AWS secret key", regexp.MustCompile(`aws_secret_access_key["']?\s*[=:]\s*["']?[A-Za-z0-9/+]{40}\b`)},
	{"gh", "a GitHub token", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60,})`)},
	{"hf_", "a Hugging Face token", regexp.MustCompile(`\bhf_[A-Za-z]{34}\b`)},
	{"xox", "a Slack token", regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{20,}`)},
	{"sk-", "an API key", regexp.MustCompile(`\bsk-(ant-|proj-)?[A-Za-z0-9_-]{40,}`)},
	{`"private_key_id"`, "a Google service account", regexp.MustCompile(`"type"\s*:\s*"service_account"`)},
}

// secretIn says what secret the beginning of a file seems to hold; empty: none.
func secretIn(head []byte) string {
	if bytes.IndexByte(head, 0) >= 0 {
		return "" // no text
	}
	for _, s := range secretTexts {
		if bytes.Contains(head, []byte(s.mark)) && s.is.Match(head) {
			return s.what
		}
	}
	return ""
}

// headWriter keeps the beginning of what is written to it.
type headWriter struct{ head []byte }

func (w *headWriter) Write(p []byte) (int, error) {
	w.head = append(w.head, p[:min(len(p), secretHead-len(w.head))]...)
	return len(p), nil
}

// Read reads the files that have changed since the last Sync, so that the next
// one begins at once, and gives sentences about those that seem to hold
// secrets. Nothing is sent.
func (t *Tree) Read(ctx context.Context) (warnings []string, err error) {
	if err := t.hash(ctx); err != nil {
		return nil, err
	}
	for _, e := range t.entries {
		if e.secret != "" {
			warnings = append(warnings, fmt.Sprintf("%s seems to hold %s, and is sent. To leave it out, put the line %s into %s.",
				nameText(e.path), e.secret, exactRule(e.path), dlwbIgnoreFile))
		}
		if len(warnings) == namesShown {
			break
		}
	}
	return warnings, nil
}

// exactRule is the pattern of an ignore file that matches one path only.
func exactRule(p string) string {
	rule := ignoreEscape(p)
	if rule[0] != '/' {
		rule = "/" + rule
	}
	return rule
}
