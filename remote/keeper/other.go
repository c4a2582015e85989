//go:build !unix

package keeper

import "github.com/dlwb/dlwb/remote"

// Client is a client where there is no keeper: each command connects by itself.
type Client struct{}

// New makes one.
func New(string, string) (*Client, error) { return &Client{}, nil }

// Lender is nobody.
func (*Client) Lender() *remote.Lender { return nil }

// Status is empty.
func (*Client) Status() ([]Status, error) { return []Status{}, nil }

// Stop has nothing to end.
func (*Client) Stop() (int, error) { return 0, nil }

// Main is nothing here.
func Main([]string) int { return 2 }
