package folder

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/metrics"
)

// Bounds of a database that somebody else may have made.
const (
	mostStore = 4 << 30  // bytes of its files together
	mostRow   = 16 << 20 // bytes of a row
	longRead  = 5 * time.Minute
	copyTries = 5
)

var storeMagic = []byte("SQLite format 3\x00") // https://www.sqlite.org/fileformat2.html

// IsStore reports whether a file is a database that runs may be kept in.
func IsStore(path string) bool {
	f, err := plainfile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, len(storeMagic))
	n, _ := io.ReadFull(f, start)
	return bytes.Equal(start[:n], storeMagic)
}

// Store reads the runs of MLflow's database as it is after its last whole transaction.
// SQLite reads a copy: beside the file itself it would make files of its own.
func Store(ctx context.Context, path string) (runs []*metrics.StoredRun, err error) {
	dir, err := os.MkdirTemp("", "dlwb-store-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	own := filepath.Join(dir, "db")
	if err := copyStore(ctx, path, own); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, longRead)
	defer cancel()
	db, err := sql.Open("sqlite", plainfile.URL(own)+"?_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	const limitLength = 0 // SQLITE_LIMIT_LENGTH, https://www.sqlite.org/c3ref/c_limit_attached.html
	if _, err := sqlite.Limit(conn, limitLength, mostRow); err != nil {
		return nil, err
	}
	return metrics.ReadStore(ctx, conn)
}

// storeParts are the files of a database: itself, what was committed to its write-ahead
// log, and what takes back a transaction that is not over.
var storeParts = []string{"", "-wal", "-journal"}

// copyStore copies the files of a database, again when somebody wrote to them
// meanwhile.
func copyStore(ctx context.Context, from, to string) error {
	for range copyTries {
		before := stamps(from)
		left := int64(mostStore)
		for _, part := range storeParts {
			n, err := copyFile(from+part, to+part, left)
			if errors.Is(err, fs.ErrNotExist) && part != "" {
				err = os.Remove(to + part) // of a try before
				if errors.Is(err, fs.ErrNotExist) {
					err = nil
				}
			}
			if err != nil {
				return err
			}
			left -= n
		}
		if stamps(from) == before {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("it was written to each of the %d times that it was copied: try again when no run logs to it", copyTries)
}

// stamps tell when the files of a database were written, and how large they are.
func stamps(path string) (s [3]struct {
	size int64
	at   time.Time
}) {
	for i, part := range storeParts {
		if info, err := os.Stat(path + part); err == nil {
			s[i].size, s[i].at = info.Size(), info.ModTime()
		}
	}
	return s
}

func copyFile(from, to string, limit int64) (int64, error) {
	in, err := plainfile.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(in, limit+1))
	if err = errors.Join(err, out.Close()); err == nil && n > limit {
		err = fmt.Errorf("%w: the files of a database are read up to %s", plainfile.ErrTooLarge, units.Binary(mostStore))
	}
	return n, err
}
