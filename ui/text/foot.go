package text

import (
	"slices"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
)

// Foot is the row of keys at the foot of a screen as it was set last. It seldom changes,
// and setting its inks takes a twentieth of a frame.
type Foot struct {
	keys []key.Help
	w    int
	line string
}

// Row sets the keys that have room, in bubbles' help with our inks. Its New makes inks of
// its own first, for each frame.
func (f *Foot) Row(s *Styles, keys []key.Binding, w int) string {
	keys = thatFit(keys, w)
	same := func(h key.Help, b key.Binding) bool { return h == b.Help() }
	if f.w != w || !slices.EqualFunc(f.keys, keys, same) {
		f.w, f.keys = w, f.keys[:0]
		for _, b := range keys {
			f.keys = append(f.keys, b.Help())
		}
		set := help.Model{ShortSeparator: footGap, Styles: help.Styles{ShortKey: s.HelpKey, ShortDesc: s.HelpName}}
		f.line = Cut(set.ShortHelpView(keys), w)
	}
	return f.line
}

// footGap is what stands between two keys.
const footGap = "   "

// thatFit are the keys that have room in w cells, always with the last of them: it
// is the key of all keys. The help itself would drop the last one first, and draws
// past its width where it has no room for an ellipsis.
func thatFit(keys []key.Binding, w int) []key.Binding {
	if len(keys) == 0 {
		return nil
	}
	wide := func(b key.Binding) int { return Wide(b.Help().Key) + 1 + Wide(b.Help().Desc) }
	last := keys[len(keys)-1]
	room := w - wide(last)
	for i, b := range keys[:len(keys)-1] {
		if room -= wide(b) + Wide(footGap); room < 0 {
			return append(keys[:i:i], last)
		}
	}
	return keys
}
