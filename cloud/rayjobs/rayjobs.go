// Package rayjobs speaks the jobs API of Ray's dashboard: packages of code, jobs,
// their logs and ends, and which nodes a cluster has. How the dashboard is reached
// is the caller's: it gives a function that dials.
package rayjobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Client calls one dashboard.
type Client struct {
	web   *http.Client
	base  string
	token func() (string, error)
}

// New makes a client of whatever dial connects to. token is what the cluster was
// started with (RAY_AUTH_TOKEN); a Ray before 2.52 does not look at it.
func New(dial func(context.Context) (net.Conn, error), token func() (string, error)) *Client {
	t := &http.Transport{MaxIdleConns: 2, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
	return &Client{web: &http.Client{Transport: t}, base: "http://127.0.0.1:8265", token: token}
}

// Close ends connections that nobody uses.
func (c *Client) Close() { c.web.CloseIdleConnections() }

// callLimit bounds a call whose answer is small.
const callLimit = 30 * time.Second

// mostAnswer bounds what is read of an answer.
const mostAnswer = 16 << 20

// Refused is an answer that is an error.
type Refused struct {
	Status int
	Says   string
}

func (e *Refused) Error() string {
	says := e.Says
	if at := strings.LastIndex(strings.TrimSpace(says), "\n"); at >= 0 && strings.HasPrefix(says, "Traceback") {
		says = strings.TrimSpace(says)[at+1:] // Python's own words for it
	}
	if len(says) > 400 {
		says = says[:400]
	}
	return fmt.Sprintf("Ray answers %d: %s", e.Status, strings.TrimSpace(says))
}

// call sends a request and reads the answer, which is JSON where into is one.
func (c *Client) call(ctx context.Context, limit time.Duration, method, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	token, err := c.token()
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if json.Valid(body) {
		r.Header.Set("Content-Type", "application/json")
	}
	reply, err := c.web.Do(r)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err
		}
		return fmt.Errorf("ask Ray's dashboard: %w", err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of Ray's dashboard: %w", err)
	}
	if reply.StatusCode/100 != 2 {
		return &Refused{reply.StatusCode, string(text)}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("the answer of Ray's dashboard to %s is no JSON of its kind: %w", path, err)
	}
	return nil
}

func missing(err error) bool {
	var refused *Refused
	return errors.As(err, &refused) && refused.Status == http.StatusNotFound
}

// Version is what the dashboard says of itself.
type Version struct {
	Ray string `json:"ray_version"`
}

// Version asks which Ray it is.
func (c *Client) Version(ctx context.Context) (v Version, err error) {
	return v, c.call(ctx, callLimit, http.MethodGet, "/api/version", nil, &v)
}

// Node is a node of the cluster.
type Node struct {
	IP        string             `json:"node_ip"`
	State     string             `json:"state"`
	Head      bool               `json:"is_head_node"`
	Resources map[string]float64 `json:"resources_total"`
}

// Nodes are those that are alive.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	var out struct {
		Data struct {
			Result struct {
				Result []Node `json:"result"`
			} `json:"result"`
		} `json:"data"`
	}
	// Of a long past there are more dead nodes than a page has.
	query := "?" + url.Values{"limit": {"10000"}, "filter_keys": {"state"}, "filter_predicates": {"="}, "filter_values": {"ALIVE"}}.Encode()
	if err := c.call(ctx, callLimit, http.MethodGet, "/api/v0/nodes"+query, nil, &out); err != nil {
		return nil, err
	}
	var alive []Node
	for _, n := range out.Data.Result.Result {
		if n.State == "ALIVE" {
			alive = append(alive, n)
		}
	}
	return alive, nil
}

// Upload puts a package there, unless it is there, and gives its URI. name is unique
// for what is in it.
func (c *Client) Upload(ctx context.Context, name string, zip []byte) (uri string, err error) {
	path := "/api/packages/gcs/" + name
	err = c.call(ctx, callLimit, http.MethodGet, path, nil, nil)
	if missing(err) {
		err = c.call(ctx, callLimit+time.Duration(len(zip)/(128<<10))*time.Second, http.MethodPut, path, zip, nil)
	}
	return "gcs://" + name, err
}

// Order is a job as it is submitted.
type Order struct {
	Entrypoint string            `json:"entrypoint"`
	ID         string            `json:"submission_id"`
	RuntimeEnv RuntimeEnv        `json:"runtime_env"`
	Metadata   map[string]string `json:"metadata,omitempty"`
}

// RuntimeEnv is what a job finds where it runs.
type RuntimeEnv struct {
	WorkingDir string            `json:"working_dir,omitempty"`
	EnvVars    map[string]string `json:"env_vars,omitempty"`
}

// Submit hands a job in. Ray takes each id once.
func (c *Client) Submit(ctx context.Context, o Order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return c.call(ctx, 2*callLimit, http.MethodPost, "/api/jobs/", body, nil)
}

// The states of a job.
const (
	Pending   = "PENDING"
	Running   = "RUNNING"
	Succeeded = "SUCCEEDED"
	Failed    = "FAILED"
	Stopped   = "STOPPED"
)

// Job is what is known of a job.
type Job struct {
	Status   string            `json:"status"`
	Message  string            `json:"message"`
	Metadata map[string]string `json:"metadata"`
	Code     *int              `json:"driver_exit_code"`
	StartMS  int64             `json:"start_time"`
	EndMS    int64             `json:"end_time"`
	Node     string            `json:"driver_node_id"`
	Agent    string            `json:"driver_agent_http_address"`
}

// Driven reports whether the job's driver was started: from then on Ray names the node
// that it is on (ray/dashboard/modules/job/job_supervisor.py).
func (j Job) Driven() bool { return j.Node != "" || j.Agent != "" || j.Code != nil }

// Over reports whether the job has ended.
func (j Job) Over() bool { return j.Status == Succeeded || j.Status == Failed || j.Status == Stopped }

// Began is when it was handed in, which is what Ray calls its start
// (ray/dashboard/modules/job/job_manager.py); zero: it was not.
func (j Job) Began() time.Time { return moment(j.StartMS) }

// Ended is when it ended.
func (j Job) Ended() time.Time { return moment(j.EndMS) }

func moment(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Look asks for a job; nil: the cluster knows none of that id.
func (c *Client) Look(ctx context.Context, id string) (*Job, error) {
	var j Job
	err := c.call(ctx, callLimit, http.MethodGet, "/api/jobs/"+url.PathEscape(id), nil, &j)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &j, nil
}

// Stop asks a job to end.
func (c *Client) Stop(ctx context.Context, id string) error {
	err := c.call(ctx, callLimit, http.MethodPost, "/api/jobs/"+url.PathEscape(id)+"/stop", nil, nil)
	if missing(err) {
		return nil
	}
	return err
}

// Tail hands over the log of a job from its beginning on, as it grows, until the job
// has ended and all of it came. whole says that it did; else the connection was lost.
func (c *Client) Tail(ctx context.Context, id string, sink func([]byte) error) (whole bool, err error) {
	at := "ws" + strings.TrimPrefix(c.base, "http") + "/api/jobs/" + url.PathEscape(id) + "/logs/tail"
	token, err := c.token()
	if err != nil {
		return false, err
	}
	conn, reply, err := websocket.Dial(ctx, at, &websocket.DialOptions{HTTPClient: c.web, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		if reply != nil && reply.StatusCode == http.StatusNotFound {
			return false, &Refused{reply.StatusCode, "there is no such job"}
		}
		return false, fmt.Errorf("follow the log by Ray's dashboard: %w", err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(mostAnswer)
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return websocket.CloseStatus(err) == websocket.StatusNormalClosure, err
		}
		if err := sink(text); err != nil {
			return false, err
		}
	}
}
