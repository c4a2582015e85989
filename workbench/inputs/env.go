package inputs

import (
	"encoding/json"
	"strconv"

	"github.com/dlwb/dlwb/profiles"
)

// Place is where a run finds its inputs on one node.
type Place struct {
	Cluster, Home string
	Results       string // the run's own directory, below the home
	State         string // the node's own directory for what survives runs, below the home
	Node, Nodes   int    // node -1: any of those that share a disk
	GPUs          int
}

// Given reports whether a profile has inputs, or state.
func Given(p *profiles.Profile) bool { return len(p.Data) > 0 || p.State != "" || len(p.After) > 0 }

// modelDir and outputDir are below the run's own directory, and come home with it.
const modelDir, outputDir = "model", "output"

// Dirs are directories that must be there before the run starts, below the home.
func (w Place) Dirs() []string {
	return []string{w.Results + "/" + modelDir, w.Results + "/" + outputDir, w.State}
}

// Env are the variables by which the training finds its inputs: those of dlwb, and
// the names that scripts for SageMaker and simple_sagemaker read.
func (w Place) Env(all []Channel, state bool) []string {
	at := func(dir string) string { return w.Home + "/" + dir }
	env := []string{"SM_MODEL_DIR=" + at(w.Results+"/"+modelDir), "SM_OUTPUT_DATA_DIR=" + at(w.Results+"/"+outputDir),
		"SM_OUTPUT_DIR=" + at(w.Results), "SM_INPUT_DIR=" + at(Dir(w.Cluster)),
		"SM_NUM_GPUS=" + strconv.Itoa(w.GPUs), "SM_HOSTS=" + jsonList(w.hosts()), "SSM_NUM_NODES=" + strconv.Itoa(w.Nodes)}
	if w.Node >= 0 {
		env = append(env, "SM_CURRENT_HOST="+hostName(w.Node), "SSM_HOST_RANK="+strconv.Itoa(w.Node))
	}
	names := []string{}
	for _, c := range all {
		path := at(Dir(w.Cluster) + "/" + c.Name)
		env = append(env, "DLWB_CHANNEL_"+c.Variable()+"="+path, "SM_CHANNEL_"+c.Variable()+"="+path)
		names = append(names, c.Name)
	}
	env = append(env, "SM_CHANNELS="+jsonList(names))
	if state {
		path := at(w.State)
		env = append(env, "DLWB_STATE="+path, "SSM_STATE="+path, "SSM_INSTANCE_STATE="+path)
	}
	return env
}

// hostName is what SageMaker calls its hosts.
func hostName(node int) string { return "algo-" + strconv.Itoa(node+1) }

func (w Place) hosts() (all []string) {
	for i := range w.Nodes {
		all = append(all, hostName(i))
	}
	return all
}

func jsonList(all []string) string {
	b, _ := json.Marshal(all)
	return string(b)
}
