package remote

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// lineMost bounds one command of the script below what every system allows.
const lineMost = 60_000

// script is the calls that put the batch in place. The functions are those of
// apply.sh.
func (b *batch) script() string {
	var s strings.Builder
	s.WriteString("begin\n")
	fresh := map[string]bool{}
	if b.first && len(b.send) == len(b.plan.send) {
		fresh = b.plan.fresh
	}
	dirs, sent := map[string][]string{}, map[string][]string{} // by the fresh directory they are in
	if b.first {
		for _, name := range b.plan.setBy {
			writeCall(&s, "keep", name)
		}
		writeCommands(&s, "rm -f", b.plan.remove, "./", "")
		writeCommands(&s, "rmdir", b.plan.rmdirs, "./", " 2>/dev/null || :")
		for _, name := range b.plan.dirs {
			dirs[topOf(name, fresh)] = append(dirs[topOf(name, fresh)], name)
		}
	}
	for _, e := range b.send {
		top := topOf(e.path, fresh)
		sent[top] = append(sent[top], e.path)
	}
	b.place(&s, dirs[""], sent[""])
	for _, top := range slices.Sorted(maps.Keys(fresh)) {
		if up := path.Dir(top); up != "." {
			writeCall(&s, "dir", up)
		}
		s.WriteString("if new " + Quote(top) + `; then` + "\n")
		writeCommands(&s, "mkdir -p", dirs[top], `"$stage/f"/`, "")
		s.WriteString(`mv -f "$stage/f"/` + Quote(top) + " ./" + Quote(top) + "\nelse\n")
		b.place(&s, dirs[top], sent[top])
		s.WriteString("fi\n")
	}
	s.WriteString("finish\n")
	return s.String()
}

func writeCall(s *strings.Builder, function, name string) {
	s.WriteString(function + " " + Quote(name) + "\n")
}

// place writes the calls that make directories and move files one by one.
func (b *batch) place(s *strings.Builder, dirs, sent []string) {
	for _, name := range dirs {
		writeCall(s, "dir", name)
	}
	byDir := map[string][]string{}
	for _, name := range sent {
		byDir[path.Dir(name)] = append(byDir[path.Dir(name)], name)
	}
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		writeCall(s, "dir", dir)
		for _, name := range byDir[dir] {
			if b.plan.over[name] {
				writeCall(s, "over", name)
			} else {
				writeCall(s, "keep", name)
			}
		}
		writeCommands(s, "mv -f", byDir[dir], `"$stage/f"/`, " "+Quote("./"+dir+"/"))
	}
}

// writeCommands writes a command for many names, as often as is needed.
func writeCommands(s *strings.Builder, command string, names []string, before, after string) {
	for len(names) > 0 {
		length := 0
		s.WriteString(command)
		for length < lineMost && len(names) > 0 {
			word := " " + before + Quote(names[0])
			s.WriteString(word)
			length += len(word) + 64 // what "$stage" stands for
			names = names[1:]
		}
		s.WriteString(after + "\n")
	}
}
