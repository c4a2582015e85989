package fakeaws

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
	"golang.org/x/crypto/ssh"
)

// keyNamed finds a key pair by name.
func (r *region) keyNamed(name string) (keyPair, bool) {
	i := slices.IndexFunc(r.keys.all(), func(k keyPair) bool { return k.Name == name })
	if i < 0 {
		return keyPair{}, false
	}
	return r.keys.all()[i], true
}

// usableKey finds one that a caller sees.
func (r *region) usableKey(name string) (keyPair, bool) {
	k, ok := r.keyNamed(name)
	if !ok {
		return k, false
	}
	return r.keys.usable(k.ID)
}

type keyXML struct {
	ID          string           `xml:"keyPairId"`
	Name        string           `xml:"keyName"`
	Fingerprint string           `xml:"keyFingerprint"`
	Type        string           `xml:"keyType,omitempty"`
	Public      string           `xml:"publicKey,omitempty"`
	Made        string           `xml:"createTime,omitempty"`
	Tags        wire.Set[tagXML] `xml:"tagSet"`
}

func importKeyPair(q *request) (any, error) {
	r, name := q.region, q.str("KeyName")
	if name == "" {
		return nil, bad("MissingParameter", "The request must contain the parameter KeyName")
	}
	if _, ok := r.keyNamed(name); ok {
		return nil, bad("InvalidKeyPair.Duplicate", "The keypair already exists")
	}
	material, err := base64.StdEncoding.DecodeString(q.str("PublicKeyMaterial"))
	if err != nil {
		return nil, bad("InvalidKey.Format", "Key is not in valid OpenSSH public key format")
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(material)
	if err != nil || public.Type() != ssh.KeyAlgoED25519 && public.Type() != ssh.KeyAlgoRSA {
		return nil, bad("InvalidKey.Format", "Key is not in valid OpenSSH public key format")
	}
	if err := q.onlyTags("key-pair"); err != nil {
		return nil, err
	}
	t, err := q.tagsFor("key-pair")
	if err != nil {
		return nil, err
	}
	if q.s.opt.Lacks.KeyTags {
		t = nil
	}
	k := keyPair{common: common{wire.NewID("key"), t}, Name: name, Public: strings.TrimSpace(string(material)),
		Fingerprint: strings.TrimPrefix(ssh.FingerprintSHA256(public), "SHA256:") + "=",
		Type:        strings.TrimPrefix(public.Type(), "ssh-"), Made: q.s.clock.Now()}
	r.keys.put(k)
	return keyXML{ID: k.ID, Name: k.Name, Fingerprint: k.Fingerprint, Tags: t.xml()}, nil
}

// deleteKeyPair says yes also when there is none.
func deleteKeyPair(q *request) (any, error) {
	name, id := q.str("KeyName"), q.str("KeyPairId")
	if name == "" && id == "" {
		return nil, bad("MissingParameter", "The request must contain the parameter KeyName or KeyPairId")
	}
	reply := struct {
		Return bool   `xml:"return"`
		ID     string `xml:"keyPairId,omitempty"`
	}{Return: true}
	for _, k := range q.region.keys.all() {
		if k.Name == name || k.ID == id && !q.s.opt.Lacks.KeysByID {
			q.region.keys.remove(k.ID)
			reply.ID = k.ID
		}
	}
	return reply, nil
}

func describeKeyPairs(q *request) (any, error) {
	names, ids := q.list("KeyName"), q.list("KeyPairId")
	var found []keyXML
	for _, k := range q.region.keys.listed() {
		ok, err := q.passes(k.Tags, fields{"key-name": one(k.Name), "key-pair-id": one(k.ID), "fingerprint": one(k.Fingerprint)})
		if err != nil {
			return nil, err
		}
		if ok && among(k.Name, names) && among(k.ID, ids) {
			x := keyXML{k.ID, k.Name, k.Fingerprint, k.Type, "", wire.Time(k.Made), k.Tags.xml()}
			if q.is("IncludePublicKey") {
				x.Public = k.Public
			}
			found = append(found, x)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(found, func(k keyXML) bool { return k.Name == name }) && !q.has("Filter.1.Name") {
			return nil, bad("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", name)
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(found, func(k keyXML) bool { return k.ID == id }) && !q.has("Filter.1.Name") {
			return nil, bad("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", id)
		}
	}
	return struct {
		Keys wire.Set[keyXML] `xml:"keySet"`
	}{wire.SetOf(found)}, nil
}
