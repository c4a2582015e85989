package main

import (
	"bytes"
	"os"
	"testing"
)

func TestTheReadmeHasTheKeyTable(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := withKeys(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, want) {
		t.Error("the key table in README.md is stale: make generate")
	}
}
