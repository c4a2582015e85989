package secretfile

import (
	"strings"
)

// secretParameters are parts of the names of parameters whose values let their holder
// in: those of addresses that were signed for a while (AWS, Google, Azure, CloudFront),
// and what people call a key.
var secretParameters = []string{"signature", "credential", "token", "secret", "passw", "pwd", "apikey", "api_key", "api-key", "accesskey", "access_key", "access-key", "authorization"}

// exactParameters are such names that are too short to be part of another.
var exactParameters = []string{"sig", "key", "auth", "code", "policy", "awsaccesskeyid", "key-pair-id", "x-amz-security-token"}

// hidden stands where a secret was.
const hidden = "…"

// Address is an address as it may be shown and noted: whatever of it lets its holder
// in is left out. A text that is no address stays as it is.
func Address(text string) string {
	scheme, rest, is := strings.Cut(text, "://")
	if !is {
		return text
	}
	host, tail := rest, ""
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		host, tail = rest[:at], rest[at:]
	}
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = hidden + host[at:]
	}
	path, query, has := strings.Cut(tail, "?")
	if !has {
		return scheme + "://" + host + path
	}
	query, fragment, marked := strings.Cut(query, "#")
	parts := strings.Split(query, "&")
	for i, part := range parts {
		if name, _, valued := strings.Cut(part, "="); valued && secretParameter(name) {
			parts[i] = name + "=" + hidden
		}
	}
	out := scheme + "://" + host + path + "?" + strings.Join(parts, "&")
	if marked {
		out += "#" + fragment
	}
	return out
}

func secretParameter(name string) bool {
	name = strings.ToLower(name)
	for _, whole := range exactParameters {
		if name == whole {
			return true
		}
	}
	for _, part := range secretParameters {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
