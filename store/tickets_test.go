package store

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
)

func TestTicketsOfAnOlderStoreAreTakenOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dlwb.sqlite")
	old := &Store{path: path}
	var err error
	old.w, err = connect(path, 1, "_txlock=immediate")
	check(t, err)
	_, err = old.w.Exec("PRAGMA journal_mode=WAL")
	check(t, err)
	check(t, old.tx(func(tx *sql.Tx) error { return migrate(tx, migrations[:3]) }))
	const secret = "0123456789abcdef0123456789abcdef"
	bodies := map[string]string{ // before: after
		`{"kind":"http","name":"jupyter","local_port":8888,"url":"http://127.0.0.1:8888/?dlwb_token=` + secret + `","note":"a \"note\""}`: `{"kind":"http","name":"jupyter","local_port":8888,"url":"http://127.0.0.1:8888/","note":"a \"note\""}`,
		`{"kind":"tcp","url":"http://127.0.0.1:8265/"}`: `{"kind":"tcp","url":"http://127.0.0.1:8265/"}`,
		`{"kind":"reverse","url":""}`:                   `{"kind":"reverse","url":""}`,
		`no JSON`:                                       `no JSON`,
	}
	_, err = old.w.Exec(`INSERT INTO clusters (name,provider,phase,profile,profile_path,profile_source,created_at,price_per_hour) VALUES ('c','local','gone','','','',1,0)`)
	check(t, err)
	want := map[string]int{}
	for before, after := range bodies {
		for range 50 { // more than one page of them
			_, err = old.w.Exec(`INSERT INTO events (time,life,run,name,body) VALUES (1,1,'','forward_opened',?)`, []byte(before))
			check(t, err)
			want[after]++
		}
	}
	check(t, old.w.Close())

	s := must[*Store](t)(Open(path))
	defer s.Close()
	for _, e := range must[[]Event](t)(s.SinceLife(1, 0, 0)) {
		want[string(e.Body)]--
	}
	for body, n := range want {
		if n != 0 {
			t.Errorf("%d events too few say %s", n, body)
		}
	}
	for _, name := range []string{path, path + "-wal"} {
		if text, _ := os.ReadFile(name); bytes.Contains(text, []byte(secret)) {
			t.Errorf("the ticket is in %s", filepath.Base(name))
		}
	}
}
