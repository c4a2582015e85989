// Package offers is the table of machines that can be had: filtered, sorted, marked
// and compared.
package offers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/ui/text"
)

// Table is a list of offers and how it is looked at. The zero Table is empty.
type Table struct {
	All    cloud.Offers
	Spot   bool // judged by the price of spot machines
	Nodes  int  // how many machines a quota must have room for
	Asking bool // the provider is being asked, since Since
	Since  time.Time

	Filter  string
	Sort    int // index of a column, plus one; 0 is the order of the offers
	reverse bool
	rows    []int // of All, as shown
	texts   []string

	marked    []string // to be compared
	Comparing bool
	column    int // picked among what is compared
}

// Set shows the offers of an answer.
func (k *Table) Set(all cloud.Offers) {
	k.All = all
	k.texts = make([]string, len(all.Offers))
	for i := range all.Offers {
		o := &all.Offers[i]
		k.texts[i] = strings.ToLower(strings.Join(append([]string{o.Instance, o.Region, o.GPU, o.Arch, o.Network}, o.Notes...), " "))
	}
	k.Narrow(k.Filter)
}

// Len is how many rows are shown.
func (k *Table) Len() int { return len(k.rows) }

// Row is the first row that shows a machine type; -1 for none.
func (k *Table) Row(instance string) int {
	return slices.IndexFunc(k.rows, func(i int) bool { return k.All.Offers[i].Instance == instance })
}

// Narrow shows the offers that have all the words, in the chosen order.
func (k *Table) Narrow(filter string) {
	k.Filter, k.rows = filter, k.rows[:0]
	want := strings.Fields(strings.ToLower(filter))
	for i := range k.All.Offers {
		if text.HasAll(k.texts[i], want) {
			k.rows = append(k.rows, i)
		}
	}
	if k.Sort > 0 {
		by := &columns[k.Sort-1]
		slices.SortStableFunc(k.rows, func(a, b int) int {
			return by.compare(&k.All.Offers[a], &k.All.Offers[b], k.Spot, k.reverse)
		})
	} else if k.reverse {
		slices.Reverse(k.rows)
	}
}

// At is the offer on a row; nil where there is none.
func (k *Table) At(row int) *cloud.Offer {
	if row < 0 || row >= len(k.rows) {
		return nil
	}
	return &k.All.Offers[k.rows[row]]
}

func offerKey(o *cloud.Offer) string {
	return fmt.Sprint(o.Region, " ", o.Instance, " ", o.GPU, " ", o.GPUs, " ", o.VCPUs)
}

// MostCompared is how many machines stand side by side.
const MostCompared = 3

// Compared are the marked offers that are there, in the order of marking.
func (k *Table) Compared() []*cloud.Offer {
	var out []*cloud.Offer
	for _, key := range k.marked {
		for i := range k.All.Offers {
			if o := &k.All.Offers[i]; offerKey(o) == key {
				out = append(out, o)
			}
		}
	}
	return out
}

// Turn picks another of what is compared.
func (k *Table) Turn(d int) {
	if n := len(k.Compared()); k.Comparing && n > 0 {
		k.column = (k.column + d + n) % n
	}
}

// Taken is the offer that is picked among what is compared; nil where nothing is.
func (k *Table) Taken() *cloud.Offer {
	all := k.Compared()
	if !k.Comparing || len(all) == 0 {
		return nil
	}
	return all[text.Clamp(k.column, 0, len(all)-1)]
}

// SortNext sorts by the next column.
func (k *Table) SortNext() {
	k.Sort, k.reverse = (k.Sort+1)%(len(columns)+1), false
	k.Narrow(k.Filter)
}

// Reverse turns the order round.
func (k *Table) Reverse() {
	k.reverse = !k.reverse
	k.Narrow(k.Filter)
}

// Mark marks a row to be compared, or takes its mark away; false when no more can
// be marked.
func (k *Table) Mark(row int) bool {
	key := offerKey(k.At(row))
	if i := slices.Index(k.marked, key); i >= 0 {
		k.marked = slices.Delete(k.marked, i, i+1)
		return true
	}
	if len(k.Compared()) >= MostCompared {
		return false
	}
	k.marked = append(k.marked, key)
	return true
}

// Compare sets the marked offers side by side, or shows the table again.
func (k *Table) Compare() { k.Comparing, k.column = !k.Comparing, 0 }
