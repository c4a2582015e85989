package transfer

import "strings"

// glob is a compiled pattern of an ignore file: what git calls wildmatch with
// WM_PATHNAME. It is run as a set of states, so that no pattern costs more
// than its length times the name's; "*a*a*a*b" is no trap.
type glob []globStep

type globStep struct {
	kind globKind
	set  *byteSet // of oneOf
}

type globKind byte

const (
	oneOf    globKind = iota // one byte of the set
	run                      // any number of bytes that are no slash
	deepRun                  // any number of bytes
	dirsOrNo                 // what follows it (deepRun, slash) may also be left out: "**/"
)

// byteSet holds bytes. No pattern but a literal slash matches a slash.
type byteSet [4]uint64

func (s *byteSet) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *byteSet) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }
func (s *byteSet) drop(b byte)     { s[b>>6] &^= 1 << (b & 63) }

func (s *byteSet) addRange(from, to byte) {
	for b := int(from); b <= int(to); b++ {
		s.add(byte(b))
	}
}

func (s *byteSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// anyByte is what "?" matches.
var anyByte = func() *byteSet {
	var s byteSet
	s.invert()
	s.drop('/')
	return &s
}()

func only(b byte) globStep {
	var s byteSet
	s.add(b)
	return globStep{oneOf, &s}
}

// compileGlob compiles a pattern. False: it is malformed, and such a pattern
// matches nothing, as in git.
func compileGlob(p string) (glob, bool) {
	var g glob
	for i := 0; i < len(p); {
		switch p[i] {
		case '?':
			g = append(g, globStep{oneOf, anyByte})
			i++
		case '*':
			var steps []globStep
			steps, i = compileStars(p, i)
			g = append(g, steps...)
		case '[':
			set, next, ok := compileClass(p, i+1)
			if !ok {
				return nil, false
			}
			g = append(g, globStep{oneOf, set})
			i = next
		case '\\':
			if i++; i == len(p) {
				return nil, false
			}
			fallthrough
		default:
			g = append(g, only(p[i]))
			i++
		}
	}
	return g, true
}

// compileStars compiles the stars at i. Two or more cross slashes when they
// are a whole path component; else they are as one.
func compileStars(p string, i int) ([]globStep, int) {
	end := i
	for end < len(p) && p[end] == '*' {
		end++
	}
	rest := p[end:]
	whole := end-i > 1 && (i == 0 || p[i-1] == '/') &&
		(rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`))
	switch {
	case !whole:
		return []globStep{{kind: run}}, end
	case rest != "" && rest[0] == '/':
		return []globStep{{kind: dirsOrNo}, {kind: deepRun}, only('/')}, end + 1
	}
	return []globStep{{kind: deepRun}}, end
}

// compileClass compiles what follows a "[" and returns where it ends.
func compileClass(p string, i int) (*byteSet, int, bool) {
	var set byteSet
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	var before byte // what a range may begin with; 0 when nothing
	for first := true; ; first = false {
		if i >= len(p) {
			return nil, 0, false
		}
		c := p[i]
		switch {
		case c == ']' && !first:
			if negated {
				set.invert()
			}
			set.drop('/')
			return &set, i + 1, true
		case c == '-' && before != 0 && i+1 < len(p) && p[i+1] != ']':
			if i++; p[i] == '\\' {
				i++
			}
			if i >= len(p) {
				return nil, 0, false
			}
			set.addRange(before, p[i])
			before, i = 0, i+1
		case c == '[' && i+1 < len(p) && p[i+1] == ':':
			next, class, ok := namedClass(p, i)
			if !ok {
				return nil, 0, false
			}
			if class == nil { // no ":]": the bracket stands for itself
				set.add('[')
				before, i = '[', i+1
				continue
			}
			for b := range 128 {
				if class(byte(b)) {
					set.add(byte(b))
				}
			}
			before, i = 0, next
		default:
			if c == '\\' {
				if i++; i >= len(p) {
					return nil, 0, false
				}
			}
			set.add(p[i])
			before, i = p[i], i+1
		}
	}
}

// namedClass reads "[:name:]" at i.
func namedClass(p string, i int) (next int, class func(byte) bool, ok bool) {
	length := strings.IndexByte(p[i+2:], ']')
	if length < 0 {
		return 0, nil, false
	}
	name, closed := strings.CutSuffix(p[i+2:i+2+length], ":")
	if !closed {
		return 0, nil, true
	}
	class, known := namedClasses[name]
	return i + 2 + length + 1, class, known
}

// namedClasses are the classes of POSIX, for ASCII only, as in git.
var namedClasses = map[string]func(byte) bool{
	"alnum":  func(b byte) bool { return isAlpha(b) || isDigit(b) },
	"alpha":  isAlpha,
	"blank":  func(b byte) bool { return b == ' ' || b == '\t' },
	"cntrl":  func(b byte) bool { return b < 32 || b == 127 },
	"digit":  isDigit,
	"graph":  isGraph,
	"lower":  isLower,
	"print":  func(b byte) bool { return b >= 32 && b < 127 },
	"punct":  func(b byte) bool { return isGraph(b) && !isAlpha(b) && !isDigit(b) },
	"space":  func(b byte) bool { return b == ' ' || b >= 9 && b <= 13 },
	"upper":  isUpper,
	"xdigit": func(b byte) bool { return isDigit(b) || b|32 >= 'a' && b|32 <= 'f' },
}

func isLower(b byte) bool { return b >= 'a' && b <= 'z' }
func isUpper(b byte) bool { return b >= 'A' && b <= 'Z' }
func isAlpha(b byte) bool { return isLower(b) || isUpper(b) }
func isDigit(b byte) bool { return b >= '0' && b <= '9' }
func isGraph(b byte) bool { return b > 32 && b < 127 }

// match reports whether the whole name matches.
func (g glob) match(name string) bool {
	now, next := make([]bool, len(g)+1), make([]bool, len(g)+1)
	g.enter(now, 0)
	for i := range len(name) {
		clear(next)
		alive := false
		for at, on := range now[:len(g)] {
			if on && g.step(next, at, name[i]) {
				alive = true
			}
		}
		if !alive {
			return false
		}
		now, next = next, now
	}
	return now[len(g)]
}

// step feeds one byte to the state at.
func (g glob) step(next []bool, at int, b byte) bool {
	switch g[at].kind {
	case oneOf:
		if g[at].set.has(b) {
			g.enter(next, at+1)
			return true
		}
	case run:
		if b != '/' {
			g.enter(next, at)
			return true
		}
	case deepRun:
		g.enter(next, at)
		return true
	}
	return false
}

// enter marks a state and those that are reached from it without a byte.
func (g glob) enter(states []bool, at int) {
	for !states[at] {
		states[at] = true
		if at == len(g) {
			return
		}
		switch g[at].kind {
		case oneOf:
			return
		case dirsOrNo:
			g.enter(states, at+3)
		}
		at++
	}
}
