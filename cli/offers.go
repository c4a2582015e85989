package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cli/queues"
	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
)

// offerRow is an offer with what follows from its prices.
type offerRow struct {
	cloud.Offer
	PerGPUHour     float64 `json:"per_gpu_hour"` // US dollars, at the price that was asked for
	PerGPUGBHour   float64 `json:"per_gpu_gb_hour"`
	SpotSaving     float64 `json:"spot_saving"` // part of the price on demand
	QuotaInstances *int    `json:"quota_left"`  // null: not known
}

type offersAnswer struct {
	Offers []offerRow `json:"offers"`
	Live   bool       `json:"live"`
	At     time.Time  `json:"at"`
	Notes  []string   `json:"notes"`
}

func (a *app) offersCommand() *cobra.Command {
	var q cloud.Query
	var provider, gpu, memory string
	var limit int
	c := &cobra.Command{
		Use: "offers", Short: "the machines that can be had, with prices, quota and zones",
		Long: `Lists instance types, the best first: what a machine has, what it costs on demand
and as a spot machine, which zones offer it, and how many the quota still allows.
Say what is needed and the cheapest that fits comes first. Without credentials it
lists the facts that dlwb brings along, and says so. Of a queue it lists the kinds of
machines that its partitions have: what is free, the limits, which accounts are
taken, and when the scheduler expects a job to begin.`,
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	f.StringVar(&provider, "provider", providers.Priced()[0], "where the machines come from")
	f.StringVar(&q.Login, "login", "", "the machine through which the provider is asked, as HOST or USER@HOST; without it, this one")
	f.StringSliceVar(&q.Regions, "region", nil, "region, or several (default: that of the AWS configuration)")
	f.StringVar(&q.Instance, "instance", "", "one instance type, such as g5.xlarge")
	f.StringVar(&gpu, "gpu", "", "GPU model, or several: 'A10G|L4'")
	f.IntVar(&q.Need.GPUs, "gpus", 0, "how many GPUs, at least")
	f.StringVar(&memory, "memory", "", "memory of each GPU, at least: 24GB")
	f.Float64Var(&q.Need.MaxPrice, "max-price", 0, "US dollars per machine and hour, at most")
	f.BoolVar(&q.Spot, "spot", false, "rank by the price of spot machines")
	f.BoolVar(&q.CPU, "cpu", false, "also types without a GPU")
	f.IntVar(&q.Count, "count", 1, "how many machines the quota must allow")
	f.BoolVar(&q.Fresh, "fresh", false, "ask again for what is remembered from earlier")
	f.IntVar(&limit, "limit", 0, "no more than so many (default: all)")
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, _ []string) (err error) {
		if gpu != "" {
			q.Need.GPU = strings.FieldsFunc(gpu, func(r rune) bool { return r == '|' || r == ',' })
		}
		if memory != "" {
			if q.Need.Memory, err = profiles.ParseSize(memory); err != nil {
				return usageError{fmt.Errorf("--memory %w", err)}
			}
		}
		if q.Need.GPUs < 0 || q.Need.MaxPrice < 0 || q.Count < 1 || limit < 0 {
			return usageError{errors.New("--gpus, --max-price and --limit can't be negative, and --count is at least 1")}
		}
		if usable := providers.Usable(); !slices.Contains(usable, provider) {
			meant := nearword.Nearest(provider, usable)
			for _, p := range providers.All {
				if slices.Contains(p.Also, provider) {
					meant = p.Name
				}
			}
			if meant != "" {
				meant = " did you mean " + meant + "?"
			}
			return usageError{fmt.Errorf("--provider %s: there is no such provider;%s one of %s", provider, meant, strings.Join(usable, ", "))}
		}
		found, err := w.Market().Offers(ctx, provider, q)
		if err != nil {
			return err
		}
		if limit > 0 && len(found.Offers) > limit {
			found.Offers = found.Offers[:limit]
		}
		return a.answer(answerOffers(found, q.Spot), func(out io.Writer) { writeOffers(out, found, q.Spot) })
	})
	return c
}

func answerOffers(found cloud.Offers, spot bool) offersAnswer {
	answer := offersAnswer{Offers: []offerRow{}, Live: found.Live, At: found.At, Notes: append([]string{}, found.Notes...)}
	for _, o := range found.Offers {
		row := offerRow{Offer: o, PerGPUHour: o.PerGPUHour(spot), PerGPUGBHour: o.PerGBHour(spot), SpotSaving: o.SpotSaving()}
		if quota := quotaOf(o, spot); quota.Known {
			row.QuotaInstances = &quota.Left
		}
		answer.Offers = append(answer.Offers, row)
	}
	return answer
}

func quotaOf(o cloud.Offer, spot bool) cloud.Quota {
	if spot {
		return o.SpotQuota
	}
	return o.Quota
}

func writeOffers(out io.Writer, found cloud.Offers, spot bool) {
	if queues.Any(found.Offers) {
		queues.Write(out, found)
		return
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "INSTANCE\tREGION\tGPUS\tGPU MEM\tVCPU\tRAM\t$/H\tSPOT $/H\tSAVES\t$/GPU-H\t$/GB-H\tQUOTA\tZONES\tNOTES")
	for _, o := range found.Offers {
		gpus, memory := "-", "-"
		if o.GPUs > 0 {
			gpus, memory = fmt.Sprintf("%d × %s", o.GPUs, o.GPU), units.Binary(o.GPUMemory)
		}
		sanitize.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", o.Instance, o.Region, gpus, memory,
			o.VCPUs, units.Binary(o.Memory), dollars(o.OnDemand.PerHour), dollars(o.Spot.PerHour), percent(o.SpotSaving()),
			dollars(o.PerGPUHour(spot)), dollars(o.PerGBHour(spot)), quotaText(quotaOf(o, spot)), zonesText(o.Zones), offerNotes(o))
	}
	t.Flush()
	for _, n := range found.Notes {
		sanitize.Fprintf(out, "%s\n", n)
	}
}

func offerNotes(o cloud.Offer) string {
	notes := o.Notes
	if o.EFA > 0 {
		notes = append([]string{fmt.Sprintf("EFA × %d", o.EFA)}, notes...)
	}
	return strings.Join(notes, "; ")
}

func dollars(v float64) string {
	if v == 0 {
		return "-"
	}
	return units.Cents(v)
}

func percent(part float64) string {
	if part == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*part)
}

// zonesText counts the zones; no type is offered in none.
func zonesText(zones []cloud.Zone) string {
	if len(zones) == 0 {
		return "?"
	}
	return fmt.Sprint(len(zones))
}

func quotaText(q cloud.Quota) string {
	if !q.Known {
		return "?"
	}
	return fmt.Sprint(q.Left)
}
