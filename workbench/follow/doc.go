// Package follow watches a run to its end: it stores what the run's replicas
// print, makes series of it, judges how it ended, stops the rest when a part
// failed or hangs, and reads the files of metrics that it writes. It knows no
// ssh and no provider: a replica is whatever answers as one, see job.Replica.
package follow
