package ec2

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/policy"
	"github.com/dlwb/dlwb/cloud/ec2/volume"
	"github.com/dlwb/dlwb/internal/pattern"
)

// The tags on everything that is made, given in the call that makes it.
const (
	tagCluster = "dlwb:cluster"
	tagLife    = policy.Tag
	tagOwner   = "dlwb:owner"
	tagHost    = "dlwb:host"
	tagToken   = "dlwb:token"
	tagExpires = "dlwb:expires"
	tagName    = "Name"
)

// The kinds of resources. The first four are in the ledger, and each time that
// a cluster was stopped; the rest comes and goes with the instances, and may be
// left behind by them.
const (
	kindInstances = "instances"
	kindGroup     = "security-group"
	kindKey       = "key-pair"
	kindPlacement = "placement-group"
	kindStop      = "stop"

	kindInstance  = "instance"
	kindVolume    = "volume"
	kindInterface = "network-interface"
	kindAddress   = "address"
	kindSpot      = "spot-request"
)

// tokenWords are what the tokens of each kind in the ledger end with.
var tokenWords = map[string]string{kindInstances: "run", kindGroup: "sg", kindKey: "key", kindPlacement: "pg", kindStop: "stop", volume.Kind: "volume"}

// baseName is the name of everything that belongs to a life.
func baseName(life cloud.Life) string { return "dlwb-" + life.Name + "-" + life.ID }

// newToken is the next token of a kind: no two entries have the same one, and
// every launch has a number.
func newToken(life cloud.Life, kind string, entries []cloud.Entry) string {
	n := 0
	for _, e := range entries {
		if e.Kind == kind {
			n++
		}
	}
	token := "dlwb-" + life.ID + "-" + tokenWords[kind]
	if kind == kindInstances || n > 0 {
		token += fmt.Sprintf("-%d", n)
	}
	return token
}

// tags are those of everything in a life but the token.
func tags(life cloud.Life, owner string, expires time.Time, users map[string]string) map[string]string {
	host, _ := os.Hostname()
	all := map[string]string{tagName: baseName(life)}
	maps.Copy(all, users)
	maps.Copy(all, map[string]string{
		tagCluster: life.Name,
		tagLife:    life.ID,
		tagOwner:   owner,
		tagHost:    tagValue(host),
		tagExpires: expires.UTC().Format(time.RFC3339),
	})
	return all
}

var notInTags = pattern.New(`[^\pL\pN\pZ_.:/=+@-]`)

// tagValue is a text with the characters and the length that tags may have.
func tagValue(s string) string {
	r := []rune(notInTags.ReplaceAllString(s, "_"))
	return string(r[:min(len(r), 256)])
}

// specify is how a creating call is told the tags of what it makes.
func specify(token string, t map[string]string, kinds ...types.ResourceType) []types.TagSpecification {
	list := []types.Tag{{Key: aws.String(tagToken), Value: &token}}
	first := []string{tagCluster, tagLife, tagOwner, tagHost, tagExpires, tagName}
	for _, k := range first {
		list = append(list, types.Tag{Key: aws.String(k), Value: aws.String(t[k])})
	}
	for _, k := range slices.Sorted(maps.Keys(t)) {
		if !slices.Contains(first, k) { // the user's own
			list = append(list, types.Tag{Key: aws.String(k), Value: aws.String(t[k])})
		}
	}
	var out []types.TagSpecification
	for _, k := range kinds {
		out = append(out, types.TagSpecification{ResourceType: k, Tags: list})
	}
	return out
}

// labels are a resource's tags as AWS lists them.
func labels(list []types.Tag) map[string]string {
	m := make(map[string]string, len(list))
	for _, t := range list {
		m[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return m
}

// filter is one condition on what AWS is to list.
func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

// ids are the resources of a ledger entry.
func ids(e cloud.Entry) []string {
	if e.ID == "" {
		return nil
	}
	return strings.Split(e.ID, ",")
}
