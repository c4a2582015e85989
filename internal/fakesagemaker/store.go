//go:build unix

package fakesagemaker

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

type bucket struct {
	region  string
	objects map[string][]byte
	written map[string]time.Time
}

// put writes an object.
func (b *bucket) put(key string, text []byte) {
	b.objects[key], b.written[key] = text, time.Now()
}

// sync writes an object where it is another one, as whoever copies directories does.
func (b *bucket) sync(key string, text []byte) {
	if old, is := b.objects[key]; !is || !bytes.Equal(old, text) {
		b.put(key, text)
	}
}

// AddBucket makes a bucket.
func (f *Fake) AddBucket(name, region string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buckets[name] = &bucket{region, map[string][]byte{}, map[string]time.Time{}}
}

// Put puts an object into a bucket.
func (f *Fake) Put(name, key, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buckets[name].put(key, []byte(text))
}

// Objects are the keys below a prefix, in order.
func (f *Fake) Objects(name, prefix string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keys(name, prefix)
}

// Object is the content of one.
func (f *Fake) Object(name, key string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.buckets[name].objects[key]
}

func (f *Fake) keys(name, prefix string) (keys []string) {
	if f.buckets[name] == nil {
		return nil
	}
	for key := range f.buckets[name].objects {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// s3 answers what is asked of a bucket by path.
func (f *Fake) s3(r *http.Request, body []byte) (string, func(http.ResponseWriter)) {
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	call := map[string]string{http.MethodPut: "PutObject", http.MethodDelete: "DeleteObject", http.MethodHead: "HeadBucket", http.MethodGet: "GetObject"}[r.Method]
	if key == "" && r.Method == http.MethodGet {
		call = "ListObjectsV2"
	} else if key != "" && r.Method == http.MethodHead {
		call = "HeadObject"
	}
	return call, func(w http.ResponseWriter) {
		f.mu.Lock()
		defer f.mu.Unlock()
		b := f.buckets[name]
		switch {
		case b == nil:
			f.refuse(w, r, &Error{404, "NoSuchBucket", "The specified bucket does not exist"})
			return
		case b.region != f.Region:
			w.Header().Set("x-amz-bucket-region", b.region)
			f.refuse(w, r, &Error{301, "PermanentRedirect", "The bucket you are attempting to access must be addressed using the specified endpoint."})
			return
		}
		w.Header().Set("x-amz-bucket-region", b.region)
		switch call {
		case "PutObject":
			b.put(key, plain(r, body))
			w.Header().Set("ETag", `"e"`)
		case "DeleteObject":
			delete(b.objects, key)
			w.WriteHeader(http.StatusNoContent)
		case "GetObject", "HeadObject":
			text, is := b.objects[key]
			if !is {
				f.refuse(w, r, &Error{404, "NoSuchKey", "The specified key does not exist."})
				return
			}
			w.Header().Set("ETag", `"e"`)
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			w.Header().Set("Last-Modified", b.written[key].UTC().Format(http.TimeFormat))
			if call == "GetObject" {
				if f.shorts == nil {
					f.shorts = map[string]int{}
				}
				if f.shorts[key]++; f.Short != nil && f.Short(key, f.shorts[key]) {
					text = text[:len(text)/2]
				}
				_, _ = w.Write(text)
			}
		case "ListObjectsV2":
			f.list(w, r, name)
		}
	}
}

func (f *Fake) list(w http.ResponseWriter, r *http.Request, name string) {
	w.Header().Set("Content-Type", "application/xml")
	prefix := r.URL.Query().Get("prefix")
	_, _ = fmt.Fprintf(w, `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>%s</Name><IsTruncated>false</IsTruncated>`, name)
	for _, key := range f.keys(name, prefix) {
		var text strings.Builder
		_ = xml.EscapeText(&text, []byte(key))
		_, _ = fmt.Fprintf(w, `<Contents><Key>%s</Key><Size>%d</Size><LastModified>%s</LastModified><ETag>"e"</ETag></Contents>`, text.String(), len(f.buckets[name].objects[key]), f.buckets[name].written[key].UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	_, _ = io.WriteString(w, `</ListBucketResult>`)
}

// plain is a body without the chunks that SDKs may send it in.
func plain(r *http.Request, body []byte) []byte {
	if !strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") && !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return body
	}
	var out []byte
	for {
		head, rest, found := bytes.Cut(body, []byte("\r\n"))
		size, _, _ := strings.Cut(string(head), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if !found || err != nil || n <= 0 || n > int64(len(rest)) {
			return out
		}
		out = append(out, rest[:n]...)
		body = bytes.TrimPrefix(rest[n:], []byte("\r\n"))
	}
}
