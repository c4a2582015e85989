package folder

import (
	"io"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/sqlite"
)

// IsStore reports whether a file is a database that runs may be kept in.
func IsStore(path string) bool {
	f, err := plainfile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, 16)
	n, _ := io.ReadFull(f, start)
	return sqlite.Is(start[:n])
}

// Store reads the runs of MLflow's database, with what its write-ahead log has beside
// it, if there is one.
func Store(path string) ([]*metrics.StoredRun, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var log io.ReaderAt
	if w, err := plainfile.Open(path + "-wal"); err == nil {
		defer w.Close()
		log = w
	}
	db, err := sqlite.Open(f, info.Size(), log)
	if err != nil {
		return nil, err
	}
	return metrics.ReadStore(db)
}
