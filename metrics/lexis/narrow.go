package lexis

import "strings"

// narrows are the signs of Chinese and Japanese text and the plain ones that they stand
// for. A comma stands close to the word behind it, as no plain one does.
var narrows = strings.NewReplacer("：", ": ", "，", ", ", "；", "; ", "＝", "=", "％", "%", "（", " (", "）", ") ", "【", "[", "】", "] ", "、", ", ", "　", " ", "\u00a0", " ", "\u2007", " ", "\u2009", " ", "\u202f", " ", "｜", "|", "／", "/", "＋", "+", "－", "-", "．", ".",
	"０", "0", "１", "1", "２", "2", "３", "3", "４", "4", "５", "5", "６", "6", "７", "7", "８", "8", "９", "9")

// Narrow is a line with plain signs where it has those that are as wide as a Chinese
// letter, "loss：0.5，acc＝0.8" as "loss: 0.5, acc=0.8", and plain blanks for those that do not break a line,
// which a page has where a log had two.
func Narrow(line string) string {
	if strings.IndexByte(line, 0xef) < 0 && strings.IndexByte(line, 0xc2) < 0 && strings.IndexByte(line, 0xe2) < 0 { // almost always
		return line
	}
	return narrowed(line)
}

func narrowed(line string) string {
	for _, wide := range [...]string{"\xef\xbc", "\u00a0", "\u2007", "\u2009", "\u202f"} {
		if strings.Contains(line, wide) {
			return narrows.Replace(line)
		}
	}
	return line
}
