//go:build unix

package fakesagemaker

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// metricData answers CloudWatch's question for metrics of hosts: the value of the last
// whole minute.
func (f *Fake) metricData(w http.ResponseWriter, r *http.Request, in url.Values) {
	start, err := time.Parse(time.RFC3339, in.Get("StartTime"))
	end, worse := time.Parse(time.RFC3339, in.Get("EndTime"))
	if err != nil || worse != nil || !start.Before(end) {
		f.refuse(w, r, &Error{400, "ValidationError", "The parameter StartTime must be less than the parameter EndTime."})
		return
	}
	at := time.Now().UTC().Truncate(time.Minute).Add(-time.Minute)
	_, _ = fmt.Fprint(w, `<GetMetricDataResponse xmlns="http://monitoring.amazonaws.com/doc/2010-08-01/"><GetMetricDataResult><MetricDataResults>`)
	for i := 1; in.Has(fmt.Sprintf("MetricDataQueries.member.%d.Id", i)); i++ {
		q := func(key string) string { return in.Get(fmt.Sprintf("MetricDataQueries.member.%d.%s", i, key)) }
		name := q("MetricStat.Metric.MetricName")
		var value float64
		known := false
		if f.Use != nil && q("MetricStat.Metric.Namespace") == "/aws/sagemaker/TrainingJobs" && q("MetricStat.Metric.Dimensions.member.1.Name") == "Host" {
			value, known = f.Use(q("MetricStat.Metric.Dimensions.member.1.Value"), name)
		}
		stamps, values := "", ""
		if known && !at.Before(start) && at.Before(end) {
			stamps, values = fmt.Sprintf("<member>%s</member>", at.Format(time.RFC3339)), fmt.Sprintf("<member>%v</member>", value)
		}
		_, _ = fmt.Fprintf(w, `<member><Id>%s</Id><Label>%s</Label><StatusCode>Complete</StatusCode><Timestamps>%s</Timestamps><Values>%s</Values></member>`, q("Id"), name, stamps, values)
	}
	_, _ = fmt.Fprint(w, `</MetricDataResults></GetMetricDataResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></GetMetricDataResponse>`)
}
