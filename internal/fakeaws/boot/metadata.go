package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// notice is what a spot instance learns of its end.
type notice struct {
	Action string `json:"action"`
	Time   string `json:"time"`
}

// Notice lets a machine's metadata say that EC2 will end it; an empty action
// takes that back.
func (r *Rig) Notice(id, action string, at time.Time) {
	g := r.find(id)
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notice = nil
	if action != "" {
		g.notice = &notice{action, at.UTC().Format(time.RFC3339)}
	}
}

func (g *guest) metadataURL() string {
	return fmt.Sprintf("http://%s/%s", g.rig.keeper.Addr(), g.id)
}

// serveMetadata answers for the metadata service of every machine, version 2:
// below the machine's id, and with a token only.
func (r *Rig) serveMetadata() (stop func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /{id}/latest/api/token", func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "" {
			http.Error(w, "no lifetime for the token", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, tokenOf(q))
	})
	mux.HandleFunc("GET /{id}/latest/meta-data/instance-id", withToken(func(w http.ResponseWriter, q *http.Request) {
		fmt.Fprint(w, q.PathValue("id"))
	}))
	mux.HandleFunc("GET /{id}/latest/meta-data/spot/instance-action", withToken(r.answerNotice))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(r.keeper); !errors.Is(err, http.ErrServerClosed) {
			r.fail(err)
		}
	}()
	return func() { _ = server.Close(); <-ended }
}

func tokenOf(q *http.Request) string { return "token-of-" + q.PathValue("id") }

func withToken(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("X-aws-ec2-metadata-token") != tokenOf(q) {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		answer(w, q)
	}
}

func (r *Rig) answerNotice(w http.ResponseWriter, q *http.Request) {
	var told *notice
	if g := r.find(q.PathValue("id")); g != nil {
		g.mu.Lock()
		told = g.notice
		g.mu.Unlock()
	}
	if told == nil {
		http.NotFound(w, q)
		return
	}
	_ = json.NewEncoder(w).Encode(told)
}
