package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func archive(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for _, h := range entries {
		text := strings.Repeat("x", 9)
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(text))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if w.Close() != nil || zip.Close() != nil {
		t.Fatal("close")
	}
	return b.Bytes()
}

// Whatever an archive names, nothing is written outside, through a link or as a device.
func TestAnArchiveWritesNothingOutside(t *testing.T) {
	dir := t.TempDir()
	into := filepath.Join(dir, "into")
	if err := os.Mkdir(into, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	packed := archive(t, tar.Header{Name: "./a/good"}, tar.Header{Name: "../out"}, tar.Header{Name: "/abs"}, tar.Header{Name: "a/../../out"},
		tar.Header{Name: "lnk", Typeflag: tar.TypeSymlink, Linkname: "../.."}, tar.Header{Name: "lnk/into/through"}, tar.Header{Name: "dev", Typeflag: tar.TypeChar},
		tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, tar.Header{Name: "unwanted"})
	skipped, err := Unpack(bytes.NewReader(packed), root, func(name string) string { return strings.ReplaceAll(name, "unwanted", "") })
	if len(skipped) < 5 {
		t.Errorf("skipped %q, %v", skipped, err)
	}
	var all []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	})
	if want := []string{"into/a/good", "into/lnk"}; !slices.Equal(all, want) {
		t.Errorf("there is %q, not %q", all, want)
	}
}

// What broke off is unpacked once more into the same directory, and nothing is told as
// left out that is there.
func TestAnArchiveIsUnpackedOverWhatCameOfIt(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	packed := archive(t, tar.Header{Name: "a"}, tar.Header{Name: "latest", Typeflag: tar.TypeSymlink, Linkname: "a"})
	for range 2 {
		if skipped, err := Unpack(bytes.NewReader(packed), root, func(name string) string { return name }); err != nil || len(skipped) > 0 {
			t.Errorf("skipped %q, %v", skipped, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(dir, "latest")); err != nil || to != "a" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

// One that was cut anywhere is an error, not fewer files.
func TestAnArchiveThatWasCutIsAnError(t *testing.T) {
	packed := archive(t, tar.Header{Name: "a"}, tar.Header{Name: "b"})
	for n := range len(packed) {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Unpack(bytes.NewReader(packed[:n]), root, func(name string) string { return name }); err == nil {
			t.Fatalf("cut at %d of %d it is whole", n, len(packed))
		}
		_ = root.Close()
	}
}

// A file that can't have its name here keeps none of the others from coming.
func TestAFileWhoseNameDoesNotFitIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	packed := archive(t, tar.Header{Name: "a/b"}, tar.Header{Name: "a"}, tar.Header{Name: strings.Repeat("x", 300)}, tar.Header{Name: "\xff\xfe", Format: tar.FormatGNU}, tar.Header{Name: "last"})
	skipped, err := Unpack(bytes.NewReader(packed), root, func(name string) string { return name })
	if err != nil || len(skipped) != 3 || !strings.Contains(strings.Join(skipped, " "), "UTF-8") {
		t.Errorf("skipped %q, %v", skipped, err)
	}
	if _, err := root.Stat("last"); err != nil {
		t.Error(err)
	}
}
