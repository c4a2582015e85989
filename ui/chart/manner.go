package chart

import (
	"fmt"
	"slices"

	"github.com/dlwb/dlwb/ui/session"
)

// valueAxes says by which value axis each curve of a chart is drawn. On a
// logarithmic one all scales have room.
func (p Page) valueAxes(group []*session.Curve) []int {
	if p.View.logY {
		return make([]int, len(group))
	}
	return session.ValueAxes(group)
}

// sideText says at which side the axis of a curve is, where there are two.
func (p Page) sideText(axes []int, i int) string {
	if slices.Max(axes) != 1 {
		return ""
	}
	return p.Styles.Dim.Of([2]string{" left", " right"}[axes[i]])
}

// scaleText says that each curve has a scale of its own, so that their heights say
// nothing of each other.
func (p Page) scaleText(group []*session.Curve) []string {
	if slices.Max(p.valueAxes(group)) < 2 {
		return nil
	}
	return []string{p.Styles.Warn.Of("each curve on its own scale"), p.Styles.Warn.Of("own scales")}
}

// lightText says that curves are drawn with an average that nobody asked for, and
// by which key the values alone are seen.
func (p Page) lightText(group []*session.Curve, a session.Axis) []string {
	if p.View.Smooth > 0 {
		return nil
	}
	most := 0.0
	for _, c := range group {
		most = max(most, p.View.factorFor(c, a))
	}
	if most == 0 {
		return nil
	}
	dim := p.Styles.Dim.Of
	return []string{dim(fmt.Sprintf("~ smoothed %g, u: raw", most)), dim("~ u: raw"), dim("~")}
}
