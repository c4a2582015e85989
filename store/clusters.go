package store

import (
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Cluster is one life of a cluster. A name may be used again after its cluster
// has ended: that is another life, with another ID, and nothing of the older
// one is mixed with it.
type Cluster struct {
	ID            int64 // of this life; given by the store
	Name          string
	Provider      string
	Phase         string
	Profile       string
	ProfilePath   string
	ProfileSource string
	Data          []byte
	CreatedAt     time.Time
	EndedAt       *time.Time
	PricePerHour  float64
	Receipt       []byte
}

const clusterColumns = `id, name, provider, phase, profile, profile_path, profile_source,
	data, created_at, ended_at, price_per_hour, receipt`

func scanCluster(r row) (c Cluster, err error) {
	err = r.Scan(&c.ID, &c.Name, &c.Provider, &c.Phase, &c.Profile, &c.ProfilePath, &c.ProfileSource,
		&c.Data, (*stamp)(&c.CreatedAt), maybeStamp{&c.EndedAt}, &c.PricePerHour, &c.Receipt)
	return c, err
}

// BeginCluster begins a new life of a name. It fails with ErrLive when the name
// has one that has not ended: of two processes that begin at once, one does.
func (s *Store) BeginCluster(c Cluster) (id int64, err error) {
	err = s.write("begin cluster "+c.Name, func(tx *sql.Tx) error {
		id, err = insertCluster(tx, c)
		if isTaken(err) {
			return ErrLive
		}
		return err
	})
	return id, err
}

// PutCluster writes a cluster and returns the id of its life. With an ID it
// writes that life. Without one it writes the newest life of the name, or
// begins a new one when there is none, or when the newest has ended and c has
// not. A life that has ended stays ended.
func (s *Store) PutCluster(c Cluster) (id int64, err error) {
	err = s.write("write cluster "+c.Name, func(tx *sql.Tx) error {
		id = c.ID
		if id == 0 {
			var ended bool
			err := tx.QueryRow(`SELECT id, ended_at IS NOT NULL FROM clusters
				WHERE name=? ORDER BY id DESC LIMIT 1`, c.Name).Scan(&id, &ended)
			if errors.Is(err, sql.ErrNoRows) || err == nil && ended && c.EndedAt == nil {
				id, err = insertCluster(tx, c)
				return err
			}
			if err != nil {
				return err
			}
		}
		return updateCluster(tx, id, c)
	})
	return id, err
}

func insertCluster(tx *sql.Tx, c Cluster) (int64, error) {
	if c.Name == "" {
		return 0, errors.New("a cluster needs a name")
	}
	res, err := tx.Exec(`INSERT INTO clusters (name, provider, phase, profile, profile_path, profile_source,
		data, created_at, ended_at, price_per_hour, receipt) VALUES (?,?,?,?,?,?,?,?,?,?,?)`,
		c.Name, c.Provider, c.Phase, c.Profile, c.ProfilePath, c.ProfileSource,
		c.Data, nanos(c.CreatedAt), maybeNanos(c.EndedAt), c.PricePerHour, c.Receipt)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

func updateCluster(tx *sql.Tx, id int64, c Cluster) error {
	return changed(tx.Exec(`UPDATE clusters SET provider=?, phase=?, profile=?, profile_path=?, profile_source=?,
		data=?, created_at=?, ended_at=coalesce(?, ended_at), price_per_hour=?, receipt=coalesce(?, receipt)
		WHERE id=? AND name=?`,
		c.Provider, c.Phase, c.Profile, c.ProfilePath, c.ProfileSource,
		c.Data, nanos(c.CreatedAt), maybeNanos(c.EndedAt), c.PricePerHour, c.Receipt, id, c.Name))
}

// Cluster returns the newest life of a name.
func (s *Store) Cluster(name string) (Cluster, error) {
	return one(s, "read cluster "+name, scanCluster,
		"SELECT "+clusterColumns+" FROM clusters WHERE name=? ORDER BY id DESC LIMIT 1", name)
}

// ClusterLife returns one life of a cluster, also one that is long over.
func (s *Store) ClusterLife(id int64) (Cluster, error) {
	return one(s, fmt.Sprintf("read cluster %d", id), scanCluster,
		"SELECT "+clusterColumns+" FROM clusters WHERE id=?", id)
}

// Clusters returns every life of every cluster, newest first.
func (s *Store) Clusters() ([]Cluster, error) {
	return query(s, "list clusters", scanCluster,
		"SELECT "+clusterColumns+" FROM clusters ORDER BY id DESC")
}

// LiveClusters returns the clusters that have not ended, newest first.
func (s *Store) LiveClusters() ([]Cluster, error) {
	return query(s, "list clusters", scanCluster,
		"SELECT "+clusterColumns+" FROM clusters WHERE ended_at IS NULL ORDER BY id DESC")
}

// life is the id of the life that a row belongs to: the one it names, else the
// newest of the cluster.
func life(tx *sql.Tx, cluster string, id int64) (int64, error) {
	if id != 0 {
		return id, nil
	}
	err := tx.QueryRow("SELECT id FROM clusters WHERE name=? ORDER BY id DESC LIMIT 1", cluster).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("cluster %q: %w", cluster, ErrNotFound)
	}
	return id, err
}

// changed turns an update that met no row into ErrNotFound.
func changed(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return ErrNotFound
}
