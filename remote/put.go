package remote

import (
	"archive/tar"
	"context"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dlwb/dlwb/internal/plainfile"
)

//go:embed syncscripts/put.sh
var putScript string

// Put copies what is in the directory from of this machine into the directory
// remoteDir of a node, below its home, with the times that the files have. What
// is there under the name of something that comes is moved to the directory
// aside, also below the home: nothing is removed. Each thing takes its place
// when all of it is there.
func Put(ctx context.Context, n *Node, from, remoteDir, aside string) error {
	dir, err := nodeDir(remoteDir)
	if err == nil {
		aside, err = nodeDir(aside)
	}
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := archiveDir(w, from)
		_ = w.CloseWithError(err)
		sent <- err
	}()
	res, err := n.Exec(ctx, Cmd{Line: Quote("sh", "-c", putScript, "dlwb", dir, aside), Stdin: r})
	_ = r.CloseWithError(io.ErrClosedPipe)
	sentErr := <-sent
	switch {
	case err != nil:
	case res.ExitCode != 0:
		err = fmt.Errorf("the node says: %s", lastWords(res.Stderr))
	default:
		err = sentErr
	}
	if err != nil {
		return fmt.Errorf("put %s on %s:%s: %w", from, n.Name(), remoteDir, err)
	}
	return nil
}

// archiveDir writes the files, directories and links of a directory as a tar.
func archiveDir(to io.Writer, from string) error {
	archive := tar.NewWriter(to)
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(from, path)
		if err != nil || relErr != nil || rel == "." {
			return err
		}
		return archiveOne(archive, path, filepath.ToSlash(rel), d)
	})
	if err != nil {
		return err
	}
	return archive.Close()
}

func archiveOne(archive *tar.Writer, path, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	head, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	head.Name, head.Uname, head.Gname, head.Uid, head.Gid = name, "", "", 0, 0
	if err := archive.WriteHeader(head); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := plainfile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(archive, f)
	return err
}

// moveScript moves things of a directory to another one, where they get a name
// that nothing has there.
const moveScript = `cd "$HOME" && cd "$1" 2>/dev/null || exit 0
aside=$HOME/$2
shift 2
for name in "$@"; do
    [ -e "./$name" ] || [ -L "./$name" ] || continue
    mkdir -p "$aside" && to=$aside/$name n=1 || exit 73
    while [ -e "$to" ]; do n=$((n + 1)) to=$aside/$name.$n; done
    mv "./$name" "$to" || exit 73
done`

// MoveAside moves things of the node's directory remoteDir to the directory
// aside, both below its home. What is not there is no error.
func MoveAside(ctx context.Context, n *Node, remoteDir, aside string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		if !localPath(name) || filepath.Base(name) != name {
			return fmt.Errorf("%s is no name of a thing in a directory", nameText(name))
		}
	}
	dir, err := nodeDir(remoteDir)
	if err != nil {
		return err
	}
	res, err := n.Exec(ctx, Cmd{Line: Quote(append([]string{"sh", "-c", moveScript, "dlwb", dir, aside}, names...)...)})
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("the node says: %s", lastWords(res.Stderr))
	}
	return err
}
