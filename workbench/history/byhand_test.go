package history

import (
	"slices"
	"testing"

	"github.com/dlwb/dlwb/workbench/event"
)

// A rank of Horovod that dlwb told of the others would be alone by its bare command.
func TestHorovodByHandIsStartedByItsOwnLauncher(t *testing.T) {
	r := Recipe{Engine: "horovod", Provider: "hosts", Machines: []MachineFact{{Host: "a"}, {Host: "b"}}}
	for i := range 4 {
		r.Ranks = append(r.Ranks, event.RankInfo{Rank: i, Node: i / 2, LocalRank: i % 2, Command: "sh '/h/.dlwb/bin/rank' '/h/.dlwb/runs/r' /py train.py --note 'two words'"})
	}
	if got, want := r.CommandsByHand(), []string{"# node 0\nhorovodrun --gloo -np 4 -H a:2,b:2 /py train.py --note 'two words'"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r.Provider = "local"
	if got, want := r.CommandsByHand(), []string{"# node 0\nhorovodrun --gloo -np 4 -H 127.0.0.1:4 /py train.py --note 'two words'"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r.Engine = "plain"
	if got := r.CommandsByHand(); len(got) != 4 || got[3] != "# node 1\nRANK=3 LOCAL_RANK=1 WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 /py train.py --note 'two words'" {
		t.Errorf("%q", got)
	}
}
