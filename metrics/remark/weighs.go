package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Weighs reports whether a line is the title of a list of importances, "feature importances:", or, where goesOn says
// that such a list has begun, one of it: "loss_skew=4". A model has an importance of each of what it was given; their
// names are those of columns, which may be called as a loss is.
func Weighs(line string, goesOn bool) bool {
	if !goesOn {
		title, ok := strings.CutSuffix(line, ":")
		title = title[strings.LastIndexByte(title, ' ')+1:]
		return ok && (strings.EqualFold(title, "importances") || strings.EqualFold(title, "importance"))
	}
	at := strings.LastIndexAny(line, " =:\t") + 1
	f, ok := lexis.Number(line, at)
	return at > 0 && ok && f.Next == len(line) && len(strings.FieldsFunc(line, func(c rune) bool { return c == '=' || c == ':' || c == ' ' || c == '\t' })) <= mostTitle
}

// IsStart reports whether a line says with which setting a training begins: "Starting training with noise multiplier: 0.5".
func IsStart(line string) bool {
	const start, with = "start", " training with "
	i := lexis.SkipBlanks(line, 0)
	if len(line)-i < len(start)+len(with) || !strings.EqualFold(line[i:i+len(start)], start) {
		return false
	}
	before, _, ok := strings.Cut(line, with)
	return ok && !strings.ContainsAny(before, "0123456789:=")
}
