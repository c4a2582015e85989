package profiles

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/pattern"
)

// Channel is a named input of the training: a directory on every node, whose path
// the training finds in its environment.
type Channel struct {
	Name string // of the channel
	From string // a path here, relative to the profile, or an address
	// SHA256 is what a single file must have, in hex; empty: it is not checked.
	SHA256 string
	// Most is how many bytes may come from an address; 0: what the disk has room for.
	Most int64
}

// ChannelSchemes are the schemes of addresses that a channel may be read from.
var ChannelSchemes = []string{"file", "http", "https", "s3"}

// Scheme is the scheme of the channel's address; "file" for a path here.
func (c Channel) Scheme() string {
	if scheme, _, found := strings.Cut(c.From, "://"); found {
		return scheme
	}
	return "file"
}

// Variable is the last part of the variable that holds the channel's path, as in
// DLWB_CHANNEL_TRAIN.
func (c Channel) Variable() string {
	return strings.ToUpper(strings.ReplaceAll(c.Name, "-", "_"))
}

// ChannelPath is the absolute path of what a channel is read from on this machine;
// "" for one that is read from elsewhere.
func (p *Profile) ChannelPath(c Channel) string {
	if c.Scheme() != "file" {
		return ""
	}
	return inside(p.Dir(), strings.TrimPrefix(c.From, "file://"))
}

// StateDir is the absolute path of the directory that keeps the state; "" when the
// profile has none.
func (p *Profile) StateDir() string {
	if p.State == "" {
		return ""
	}
	return filepath.Join(p.Dir(), filepath.FromSlash(p.State))
}

// checkInputs looks whether what channels are read from here is there.
func (p *Profile) checkInputs() (errs Errors) {
	for _, c := range p.Data {
		at, key := p.ChannelPath(c), "data."+c.Name
		if c.Scheme() == "s3" && c.SHA256 != "" {
			errs = append(errs, p.Fault(key, quote(c.From), "what lies in S3 has no SHA-256", "", "leave sha256 out: its objects are told by their ETag"))
		}
		if at == "" {
			continue
		}
		st, err := os.Stat(at)
		switch {
		case err == nil && c.SHA256 != "" && st.IsDir():
			errs = append(errs, p.Fault(key, quote(c.From), "a directory has no SHA-256", "", "leave sha256 out, or name a file"))
		case err == nil:
		case os.IsNotExist(err):
			near := nearestFile(filepath.Dir(at), filepath.Base(at), nil)
			if near != "" {
				near = path.Join(path.Dir(c.From), near)
			}
			errs = append(errs, p.Fault(key, quote(c.From), "it does not exist", near, "paths are relative to the profile"))
		default:
			errs = append(errs, p.Fault(key, quote(c.From), err.Error(), "", "make it readable"))
		}
	}
	for _, name := range p.After {
		at := p.AfterPath(name)
		if _, err := os.Stat(at); err != nil {
			near := nearestFile(filepath.Dir(at), filepath.Base(at), isYAML)
			if near != "" {
				near = path.Join(path.Dir(name), near)
			}
			errs = append(errs, p.Fault("after", quote(name), "there is no such profile", near, "paths are relative to this profile"))
		}
	}
	return errs
}

// Dir is the directory that the profile lies in.
func (p *Profile) Dir() string {
	if abs, err := filepath.Abs(filepath.Dir(p.Path)); err == nil {
		return abs
	}
	return filepath.Dir(p.Path)
}

var (
	channelForm = pattern.New(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)
	sumForm     = pattern.New(`^[0-9a-f]{64}$`)
	// channelKeys are the keys of a channel that is a mapping.
	channelKeys = []string{"from", "sha256", "most"}
)

// mostChannels bounds the inputs of a profile.
const mostChannels = 32

var channelsType = &Type{
	Name: "channels", Doc: "a mapping of names to where each is read from: a path relative to the profile, an address (http, https, file, s3), or {from: ADDRESS, sha256: HEX, most: SIZE}",
	Schema: func(*Field) schema {
		from := schema{"type": "string", "minLength": 1}
		return schema{"type": "object", "maxProperties": mostChannels, "propertyNames": schema{"pattern": channelForm.String()},
			"additionalProperties": schema{"oneOf": []any{from, schema{"type": "object", "required": []string{"from"}, "additionalProperties": false,
				"properties": schema{"from": from, "sha256": schema{"type": "string", "pattern": sumForm.String()},
					"most": schema{"type": "string", "pattern": "^" + sizePattern}}}}}}
	},
	parse: func(d *decoder, f *Field, n *yaml.Node, into any) {
		var all []Channel
		seen := map[string]string{}
		ok := d.entries(f.Key, n, func(k, v *yaml.Node) bool {
			c := Channel{Name: k.Value}
			switch other := seen[c.Variable()]; {
			case !channelForm.MatchString(c.Name):
				return d.keyFlaw(f.Key, k, flaw{why: "this is no name of a channel", next: "letters, digits, _ and -; the first is a letter, such as train"})
			case other != "":
				return d.keyFlaw(f.Key, k, flaw{why: other + " has the same variable, DLWB_CHANNEL_" + c.Variable(), next: "give one of them another name"})
			case len(all) == mostChannels:
				return d.keyFlaw(f.Key, k, flaw{why: "there are too many channels", next: "put several files into one directory"})
			}
			seen[c.Variable()] = c.Name
			ok := d.channel(join(f.Key, k.Value), v, &c)
			all = append(all, c)
			return ok
		})
		if ok {
			*into.(*[]Channel) = all
		}
	},
	format: func(_ *Field, from any) string {
		var parts []string
		for _, c := range *from.(*[]Channel) {
			value := yamlText(c.From)
			parts = append(parts, yamlText(c.Name)+": "+c.text(value))
		}
		return writeMap(parts)
	},
}

// text is a channel as a profile has it, by its address there.
func (c Channel) text(from string) string {
	if c.SHA256 == "" && c.Most == 0 {
		return from
	}
	all := []string{"from: " + from}
	if c.SHA256 != "" {
		all = append(all, "sha256: "+yamlText(c.SHA256))
	}
	if c.Most > 0 {
		all = append(all, "most: "+writeSize(c.Most))
	}
	return writeMap(all)
}

// channel reads the value of one channel.
func (d *decoder) channel(key string, v *yaml.Node, c *Channel) bool {
	if v.Kind != yaml.MappingNode {
		return d.channelFrom(key, v, c)
	}
	ok := d.entries(key, v, func(k, v *yaml.Node) bool {
		switch k.Value {
		case "from":
			return d.channelFrom(join(key, k.Value), v, c)
		case "sha256":
			text, ok := d.scalar(join(key, k.Value), v)
			if c.SHA256 = strings.ToLower(text); ok && !sumForm.MatchString(c.SHA256) {
				d.flaw(join(key, k.Value), v, flaw{why: "this is no SHA-256", next: "64 hexadecimal digits, as sha256sum prints them"})
				return false
			}
			return ok
		case "most":
			return d.channelMost(join(key, k.Value), v, c)
		}
		return d.keyFlaw(key, k, flaw{why: "a channel has no such key", nearest: nearword.Nearest(k.Value, channelKeys), next: "a channel has " + strings.Join(channelKeys, ", ")})
	})
	if ok && c.From == "" {
		d.failAt(v, key, key, flaw{why: "it does not say where it is read from", next: "write {from: ADDRESS, sha256: HEX}"})
		return false
	}
	return ok
}

// channelMost reads how many bytes may come.
func (d *decoder) channelMost(key string, v *yaml.Node, c *Channel) bool {
	text, ok := d.scalar(key, v)
	if !ok {
		return false
	}
	var fl flaw
	if c.Most, fl = readSize(text); fl.why != "" {
		d.flaw(key, v, fl)
		return false
	}
	return true
}

func (d *decoder) channelFrom(key string, v *yaml.Node, c *Channel) bool {
	text, ok := d.scalar(key, v)
	if !ok {
		return false
	}
	fl := oneLine(text)
	if fl.why == "" {
		fl = checkFrom(text)
	}
	if fl.why == withPassword {
		d.hide(v)
		d.failAt(v, key, key, fl)
		return false
	}
	if fl.why != "" {
		d.flaw(key, v, fl)
		return false
	}
	c.From = text
	return true
}

const withPassword = "it has a user or a password in it"

// checkFrom says what is wrong with where a channel is read from.
func checkFrom(text string) flaw {
	scheme, rest, address := strings.Cut(text, "://")
	if !address {
		return plainPath(text)
	}
	switch u, err := url.Parse(text); {
	case nearword.Fold(scheme) != scheme || !isScheme(scheme):
		return flaw{why: "nothing can be read from there", nearest: nearestScheme(scheme, rest), next: "a path, or an address with " + strings.Join(ChannelSchemes, ", ")}
	case scheme == "s3":
		if !bucketForm.MatchString(text) {
			return flaw{why: "this is no address in S3", next: "write s3://bucket/prefix"}
		}
	case scheme == "file":
		if !path.IsAbs(rest) {
			return flaw{why: "the path of a file:// address is absolute", next: "write file:///PATH, or the path alone, relative to the profile"}
		}
		return plainPath(rest)
	case err != nil || u.Host == "" || strings.ContainsAny(text, " \t"):
		return flaw{why: "this is no address", next: "such as https://example.org/digits.csv"}
	case u.User != nil:
		return flaw{why: withPassword, next: "secrets never stand in a profile: fetch the file yourself, and name its path"}
	}
	return flaw{}
}

func isScheme(text string) bool {
	for _, s := range ChannelSchemes {
		if s == text {
			return true
		}
	}
	return false
}

func nearestScheme(scheme, rest string) string {
	if near := nearword.Nearest(scheme, ChannelSchemes); near != "" {
		return near + "://" + rest
	}
	return ""
}

// afterType are the profiles that come before this one.
var afterType = listType("list of profiles", "the path of a profile, relative to this one, or a list of them", true, stringSchema(`\.ya?ml$|/$`),
	func(_ *Field, text string) (string, flaw) {
		switch fl := plainPath(text); {
		case fl.why != "":
			return "", fl
		case !isYAML(text) && !strings.HasSuffix(text, "/"):
			return "", flaw{why: "this is no path of a profile", nearest: text + ".yaml", next: "name the file, such as prepare.yaml, or a directory with a slash behind it"}
		}
		return text, flaw{}
	})

// AfterPath is the absolute path of a profile that comes before this one.
func (p *Profile) AfterPath(name string) string {
	at := inside(p.Dir(), name)
	if strings.HasSuffix(name, "/") {
		at = filepath.Join(at, FileName)
	}
	return at
}
