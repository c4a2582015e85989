package metrics

import "github.com/dlwb/dlwb/metrics/lexis"

// figure is a number as it stands in a line.
type figure = lexis.Figure
