package tunnel

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/dlwb/dlwb/internal/wholefile"
)

// The local ports that the forwards of a cluster had are kept in a file, so that
// an address stays what it was when dlwb is started again. They are a habit and
// no promise: whoever can't read or write the file chooses anew.

func (t *Tunnels) portsFile(cluster string) string {
	return filepath.Join(t.dir, "forwards", cluster+".json")
}

func (t *Tunnels) keptPorts(cluster string) map[string]int {
	kept := map[string]int{}
	b, err := os.ReadFile(t.portsFile(cluster))
	if err == nil {
		_ = json.Unmarshal(b, &kept)
	}
	return kept
}

// keptPort is the local port that a forward had before; 0 when it had none.
func (t *Tunnels) keptPort(cluster, what string) int {
	if port := t.keptPorts(cluster)[what]; port > 0 && port <= 65535 {
		return port
	}
	return 0
}

// keepPort notes the local port of a forward. The first one stays, so that a
// second dlwb, which has to take another, does not change it; one that was
// asked for takes its place.
func (t *Tunnels) keepPort(cluster, what string, port int, asked bool) {
	t.alone(func() {
		kept := t.keptPorts(cluster)
		if had := kept[what]; had == port || had != 0 && !asked {
			return
		}
		kept[what] = port
		b, err := json.Marshal(kept)
		if err == nil {
			err = wholefile.Write(t.portsFile(cluster), b, 0o600)
		}
		if err != nil {
			slog.Debug("the local port was not kept", "cluster", cluster, "error", err)
		}
	})
}

// Forget removes what is remembered of the local ports of a cluster.
func (t *Tunnels) Forget(cluster string) (err error) {
	t.alone(func() { err = errors.Join(os.RemoveAll(t.portsFile(cluster)), t.writeKept(cluster, nil)) })
	return err
}
