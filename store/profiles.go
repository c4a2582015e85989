package store

import (
	"database/sql"
	"time"
)

// Profile is a profile file that was used.
type Profile struct {
	Path     string
	Name     string
	Provider string
	Hash     string // of the content that was trusted; empty: not yet
	UsedAt   time.Time
}

// PutProfile remembers a profile.
func (s *Store) PutProfile(p Profile) error {
	return s.write("remember profile "+p.Path, func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT OR REPLACE INTO profiles (path, name, provider, hash, used_at) VALUES (?,?,?,?,?)`,
			p.Path, p.Name, p.Provider, p.Hash, nanos(p.UsedAt))
		return err
	})
}

const profileQuery = "SELECT path, name, provider, hash, used_at FROM profiles "

func scanProfile(r row) (p Profile, err error) {
	err = r.Scan(&p.Path, &p.Name, &p.Provider, &p.Hash, (*stamp)(&p.UsedAt))
	return p, err
}

// Profile returns what is remembered of a profile file.
func (s *Store) Profile(path string) (Profile, error) {
	return one(s, "read profile "+path, scanProfile, profileQuery+"WHERE path=?", path)
}

// Profiles returns the profiles that were used, last used first.
func (s *Store) Profiles() ([]Profile, error) {
	return query(s, "list profiles", scanProfile, profileQuery+"ORDER BY used_at DESC, path")
}

// ForgetProfile forgets a profile; one that is not known is no error.
func (s *Store) ForgetProfile(path string) error {
	return s.write("forget profile "+path, func(tx *sql.Tx) error {
		_, err := tx.Exec("DELETE FROM profiles WHERE path=?", path)
		return err
	})
}
