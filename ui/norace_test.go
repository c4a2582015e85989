//go:build !race

package ui_test

import "testing"

func drawsOnly(*testing.T) {}
