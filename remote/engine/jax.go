package engine

import "strconv"

// jaxVars are what jax.distributed.initialize is given. Of these JAX itself reads
// the address alone; a script passes on the other two.
var jaxVars = []string{"JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"}

// jax starts one process per node, which has all GPUs of it.
func jax(l layout) [][]Proc {
	return l.eachRank(func(node, local int) []string {
		env := append([]string{
			"JAX_COORDINATOR_ADDRESS=" + joinHostPort(l.nodes[0].Host, l.port),
			"JAX_NUM_PROCESSES=" + strconv.Itoa(l.world),
			"JAX_PROCESS_ID=" + strconv.Itoa(l.first[node]+local),
		}, l.rankEnv(node, local)...)
		if l.nodes[node].GPUs > 0 && l.procs[node] > 1 {
			env = append(env, "JAX_LOCAL_DEVICE_IDS="+strconv.Itoa(local))
		}
		return env
	})
}
