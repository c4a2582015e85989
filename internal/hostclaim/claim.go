package hostclaim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// File is where a claim lies, relative to the home directory. It goes last when
// a host is given back, so that whoever comes back after an interruption knows
// that there is more to do.
const File = ".dlwb/cluster"

// PeerLine is what the lines of authorized_keys begin with that let the nodes
// of a cluster stop a run on each other.
const PeerLine = `restrict,command="sh ~/.dlwb/bin/peer" `

// Claim says who has a host. Its text is a contract: other versions of dlwb read
// it, and write what this one reads.
type Claim struct {
	Cluster, Life, Owner string
	// Since is when it was taken, in seconds since 1970.
	Since int64
	// Dir is where the code lies; empty: in the home directory.
	Dir string
	// Had are the places that dlwb writes to and that were there before,
	// relative to the home directory.
	Had []string
}

// Held reports whether anybody has the host.
func (c Claim) Held() bool { return c.Cluster != "" || c.Life != "" }

// Text is the claim as its file holds it.
func (c Claim) Text() string {
	return fmt.Sprintf("cluster %s\nlife %s\nowner %s\nsince %d\ndir %s\n%s\n",
		c.Cluster, c.Life, c.Owner, c.Since, c.Dir, strings.Join(append([]string{"had"}, c.Had...), " "))
}

// Parse reads the text of a claim. What it does not know it passes over.
func Parse(text string) Claim {
	var c Claim
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		value = strings.TrimSpace(value)
		switch key {
		case "cluster":
			c.Cluster = value
		case "life":
			c.Life = value
		case "owner":
			c.Owner = value
		case "since":
			c.Since, _ = strconv.ParseInt(value, 10, 64)
		case "dir":
			c.Dir = value
		case "had":
			c.Had = append([]string(nil), strings.Fields(value)...)
		}
	}
	return c
}

// String says who has the host, for people.
func (c Claim) String() string {
	text := "cluster " + c.Cluster + " of " + c.Owner + " has it"
	if c.Since > 0 {
		text += " since " + time.Unix(c.Since, 0).Format("2006-01-02 15:04")
	}
	return text
}

// Elsewhere is the directory of the code that is not in the home directory;
// empty: there is none.
func (c Claim) Elsewhere() string {
	if c.Dir == "" {
		return ""
	}
	return c.Dir + "/dlwb-" + c.Cluster
}
