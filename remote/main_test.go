package remote

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/dlwb/dlwb/internal/agentbuilt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
