package boot

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/internal/shellword"
)

// config is the part of a #cloud-config document that a guest obeys, as
// cloud-init reads it.
type config struct {
	User  string   // who logs in; empty: the image's own
	Keys  []string // for authorized_keys
	Host  hostKey
	Files []file
	// Early and Late are shell scripts: of bootcmd, which runs at each boot
	// and before ssh answers, and of runcmd, which runs once and later.
	Early, Late string
	// Ignored are the names of what else the document asks for.
	Ignored []string
}

type hostKey struct{ Private, Public string }

// file is one of write_files.
type file struct {
	Path    string
	Content []byte
	Mode    os.FileMode
	Append  bool
}

const header = "#cloud-config"

// parse reads user-data: a #cloud-config document, a script, several of these as
// parts of a MIME document, or nothing; compressed or not.
func parse(userData []byte) (config, error) {
	if r, err := gzip.NewReader(bytes.NewReader(userData)); err == nil {
		if userData, err = io.ReadAll(r); err != nil {
			return config{}, fmt.Errorf("unpack the user-data: %w", err)
		}
	}
	if bytes.HasPrefix(bytes.ToLower(userData), []byte("content-type: multipart/")) {
		return parts(userData)
	}
	return parsePart(userData)
}

// parts reads the parts of a MIME document. A later one adds to lists and replaces
// nothing, as its Merge-Type has to say.
func parts(userData []byte) (config, error) {
	m, err := mail.ReadMessage(bytes.NewReader(userData))
	if err != nil {
		return config{}, err
	}
	_, of, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return config{}, err
	}
	var all config
	for r, n := multipart.NewReader(m.Body, of["boundary"]), 0; ; n++ {
		part, err := r.NextPart()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return all, err
		}
		c, err := parsePart(text)
		if err != nil {
			return all, err
		}
		script := strings.HasPrefix(part.Header.Get("Content-Type"), "text/x-shellscript")
		if n > 0 && !script && !strings.Contains(part.Header.Get("Merge-Type"), "list(append)+dict(no_replace") {
			return all, errors.New("a further part would replace the lists of the first")
		}
		if n == 0 {
			all = c
			continue
		}
		all.Early, all.Late, all.Files = all.Early+c.Early, all.Late+c.Late, append(all.Files, c.Files...)
		all.Ignored = append(all.Ignored, c.Ignored...)
	}
}

func parsePart(userData []byte) (config, error) {
	first, _, _ := strings.Cut(string(userData), "\n")
	switch {
	case len(bytes.TrimSpace(userData)) == 0:
		return config{}, nil
	case strings.HasPrefix(first, "#!"):
		return config{Late: string(userData)}, nil
	case strings.TrimSpace(first) != header:
		return config{}, fmt.Errorf("user-data begins with %q: neither %s nor a script, cloud-init would ignore it", first, header)
	}
	var doc map[string]yaml.Node
	if err := yaml.Unmarshal(userData, &doc); err != nil {
		return config{}, fmt.Errorf("read the cloud-config: %w", err)
	}
	var c config
	var failed error
	for key, value := range doc {
		if err := c.set(key, &value); err != nil {
			failed = errors.Join(failed, fmt.Errorf("cloud-config: %s: %w", key, err))
		}
	}
	return c, failed
}

// set obeys one key of the document.
func (c *config) set(key string, value *yaml.Node) (err error) {
	switch key {
	case "users":
		err = c.addUsers(value)
	case "disable_root":
		if value.Value == "false" {
			c.User = "root"
		}
	case "ssh_authorized_keys":
		var keys []string
		err = value.Decode(&keys)
		c.Keys = append(c.Keys, keys...)
	case "ssh_keys":
		var keys map[string]string
		err = value.Decode(&keys)
		c.Host = hostKey{keys["ed25519_private"], keys["ed25519_public"]}
	case "write_files":
		c.Files, err = filesOf(value)
	case "bootcmd":
		c.Early, err = script(value)
	case "runcmd":
		c.Late, err = script(value)
	case "ssh_deletekeys", "ssh_pwauth": // a machine has one host key, and no passwords
	default:
		c.Ignored = append(c.Ignored, key)
	}
	return err
}

// addUsers reads users. Beside the image's own, a machine has one: the last
// that is named.
func (c *config) addUsers(value *yaml.Node) error {
	var entries []yaml.Node
	if err := value.Decode(&entries); err != nil {
		return err
	}
	for i := range entries {
		if entries[i].Kind != yaml.MappingNode {
			continue // "default"
		}
		var user struct {
			Name string
			Keys []string `yaml:"ssh_authorized_keys"`
		}
		if err := entries[i].Decode(&user); err != nil {
			return err
		}
		c.User = user.Name
		c.Keys = append(c.Keys, user.Keys...)
	}
	return nil
}

// script makes one of a list of commands: each is a line for the shell, or a
// list of the words of a command.
func script(value *yaml.Node) (string, error) {
	var items []yaml.Node
	if err := value.Decode(&items); err != nil {
		return "", err
	}
	var lines strings.Builder
	for i := range items {
		line := items[i].Value
		if items[i].Kind == yaml.SequenceNode {
			var words []string
			if err := items[i].Decode(&words); err != nil {
				return "", err
			}
			for j, word := range words {
				words[j] = shellword.Quote(word)
			}
			line = strings.Join(words, " ")
		}
		fmt.Fprintln(&lines, line)
	}
	return lines.String(), nil
}

// filesOf reads write_files.
func filesOf(value *yaml.Node) ([]file, error) {
	var entries []struct {
		Path, Content, Encoding, Permissions string
		Append                               bool
	}
	if err := value.Decode(&entries); err != nil {
		return nil, err
	}
	var files []file
	for _, e := range entries {
		content, err := decode(e.Content, e.Encoding)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Path, err)
		}
		mode := uint64(0o644)
		if e.Permissions != "" {
			if mode, err = strconv.ParseUint(e.Permissions, 8, 12); err != nil {
				return nil, fmt.Errorf("%s: permissions %q are no octal number", e.Path, e.Permissions)
			}
		}
		files = append(files, file{Path: e.Path, Content: content, Mode: os.FileMode(mode), Append: e.Append})
	}
	return files, nil
}

// decode reads a file's content in one of cloud-init's encodings.
func decode(content, encoding string) ([]byte, error) {
	text := []byte(content)
	packing, coding, both := strings.Cut(encoding, "+")
	if !both && !strings.HasPrefix(encoding, "gz") {
		packing, coding = "", encoding
	}
	switch coding {
	case "", "text/plain":
	case "b64", "base64":
		var err error
		if text, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), "")); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("the encoding %q is not known", encoding)
	}
	if packing == "" {
		return text, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
