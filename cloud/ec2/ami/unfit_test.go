package ami

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// AWS takes money for a machine that will never answer, too.
func TestAnImageThatNoNodeCanComeFromIsRefused(t *testing.T) {
	for says, i := range map[string]types.Image{
		"":                {PlatformDetails: aws.String("Linux/UNIX"), State: types.ImageStateAvailable},
		"is for arm64":    {Architecture: types.ArchitectureValuesArm64},
		"Windows":         {Platform: types.PlatformValuesWindows},
		"one of Windows":  {Platform: "windows"}, // as EC2 itself writes it, and moto
		"nodes are Linux": {PlatformDetails: aws.String("Windows with SQL Server Standard")},
		"it is failed":    {State: types.ImageStateFailed},
	} {
		if i.Architecture == "" {
			i.Architecture = types.ArchitectureValuesX8664
		}
		i.ImageId, i.Name = aws.String("ami-0123456789abcdef0"), aws.String("theirs")
		err := unfit(i, describeImage(i), "x86_64")
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %v", says, err)
		}
	}
}
