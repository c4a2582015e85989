package engine

import (
	"encoding/json"
	"strconv"
)

// The kinds of tasks of TF_CONFIG.
const (
	taskChief     = "chief"
	taskWorker    = "worker"
	taskServer    = "ps"
	taskEvaluator = "evaluator"
)

// task is the place of a process in TF_CONFIG.
type task struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
}

// tensorflow starts one process per node, which has all GPUs of it, and tells it
// by TF_CONFIG where the others are. A process alone gets none: then every
// strategy for one machine is at home.
func tensorflow(l layout) [][]Proc {
	tasks, cluster := l.tasks()
	plan := l.eachRank(func(node, local int) []string {
		env := []string{"RANK=" + strconv.Itoa(l.first[node]+local)}
		if l.world == 1 {
			return env
		}
		text, err := json.Marshal(struct {
			Cluster map[string][]string `json:"cluster"`
			Task    task                `json:"task"`
		}{cluster, tasks[l.first[node]+local]})
		if err != nil {
			panic(err) // of strings and a number
		}
		return append(env, "TF_CONFIG="+string(text))
	})
	for _, procs := range plan {
		for i, p := range procs {
			// A server waits for work for ever, and is not asked to stop.
			procs[i].Helper = tasks[p.Ranks[0]].Type == taskServer
		}
	}
	return plan
}

// tasks deals out the kinds of tasks: the first process leads, those of the last
// nodes hold parameters. Without parameter servers all are workers alike, and the
// first of them leads; TensorFlow wants no evaluator in the list.
func (l layout) tasks() ([]task, map[string][]string) {
	tasks, cluster := make([]task, 0, l.world), map[string][]string{}
	servers, evaluator := len(l.nodes)-l.job.ParameterServers, -1
	if l.job.Evaluator {
		evaluator = servers - 1
	}
	count := map[string]int{}
	for node := range l.nodes {
		for range l.ranks(node) {
			kind := taskWorker
			switch {
			case node >= servers:
				kind = taskServer
			case node == evaluator:
				kind = taskEvaluator
			case len(tasks) == 0 && (l.job.ParameterServers > 0 || l.job.Evaluator):
				kind = taskChief
			}
			rank := len(tasks)
			tasks = append(tasks, task{kind, count[kind]})
			count[kind]++
			if kind != taskEvaluator {
				cluster[kind] = append(cluster[kind], joinHostPort(l.nodes[node].Host, l.portAt(rank)))
			}
		}
	}
	return tasks, cluster
}

// taskPorts: every task listens.
func taskPorts(l layout, p *Plan) {
	p.Ports = l.world
	p.Leads = l.job.ParameterServers > 0
}
