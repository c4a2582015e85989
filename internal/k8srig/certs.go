package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certs are those of the webhooks, as PEM.
type certs struct{ ca, caKey, tls, tlsKey []byte }

// makeCerts makes an authority and a certificate for webhooks on this machine.
// Kubeflow's operator makes its own anew where these are not as it would: RSA in
// PKCS#1, and these names.
func makeCerts(dir string) (c certs, err error) {
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"training-operator"}, CommonName: "training-operator-ca"},
		DNSNames: []string{"training-operator-ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(5, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign}
	caKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return c, err
	}
	if c.ca, err = sign(authority, authority, caKey, caKey); err != nil {
		return c, err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return c, err
	}
	server := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "training-operator.kubeflow.svc"}, DNSNames: []string{"training-operator.kubeflow.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(5, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if c.tls, err = sign(server, authority, key, caKey); err != nil {
		return c, err
	}
	c.caKey, c.tlsKey = pemOf(caKey), pemOf(key)
	return c, os.WriteFile(filepath.Join(dir, "accounts.key"), pemOf(key), 0o600)
}

func sign(c, by *x509.Certificate, key, byKey *rsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, byKey)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

func pemOf(key *rsa.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

// write puts the files where a webhook server looks for them.
func (c certs) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"ca.crt": c.ca, "ca.key": c.caKey, "tls.crt": c.tls, "tls.key": c.tlsKey} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
