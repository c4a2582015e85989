package sharing

import (
	"context"
	"errors"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/workbench/event"
)

// Sync copies the code to each place once. A node whose records lie in the home of
// another, and its code does not, gets it by itself: under one home only one can wait
// for what another node passes on.
func (all Nodes) Sync(ctx context.Context, nodes []*remote.Node, tree *transfer.Tree, dir string, progress func(node int, text string)) (transfer.SyncResult, error) {
	groups := [][]int{nil}
	for i := range nodes {
		switch {
		case !all.FirstAtCode(i):
		case all.FirstAtHome(i):
			groups[0] = append(groups[0], i)
		default:
			groups = append(groups, []int{i})
		}
	}
	began := time.Now()
	var total transfer.SyncResult
	var errs []error
	for _, group := range groups {
		some := make([]*remote.Node, len(group))
		for k, i := range group {
			some[k] = nodes[i]
		}
		res, err := transfer.Sync(ctx, some, tree, dir, func(node int, text string) {
			if progress != nil {
				progress(group[node], text)
			}
		})
		total = total.And(res)
		errs = append(errs, err)
	}
	total.Duration = time.Since(began)
	return total, errors.Join(errs...)
}

// Notices are what of a sync one should know besides its figures.
func Notices(res transfer.SyncResult) (list []event.Noticed) {
	for _, file := range res.Moving {
		list = append(list, event.Noticed{Level: "warning", Text: file + " is being written to and was not sent", Next: "list it in .dlwbignore"})
	}
	for _, file := range res.Edited {
		list = append(list, event.Noticed{Level: "warning", Text: file + " was edited there and is left as it is"})
	}
	for _, file := range res.MadeWay {
		list = append(list, event.Noticed{Level: "warning", Text: file + " was edited there and here; what was there is kept in ~/.dlwb/kept"})
	}
	return list
}
